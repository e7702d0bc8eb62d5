#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "src/tools/sim/parameters.h"
#include "src/tools/sim/random.h"
#include "src/tools/sim/request.h"

namespace vllm_metrics::sim {

// Where requests come from, in the order of their arrival.
class Workload {
 public:
  virtual ~Workload() = default;

  // When the next request arrives; kNever when there is none to come, or none
  // before another one ends.
  virtual Ticks next_arrival() const = 0;

  // That request. Needs one.
  virtual RequestSpec take() = 0;

  // The request has ended, or was refused: its client may ask again.
  virtual void ended(const RequestSpec& spec, Ticks now) {
    (void)spec;
    (void)now;
  }

  // Requests from `now` on are as these parameters have them.
  virtual void apply(const WorkloadParameters& parameters, Ticks now) = 0;

  // How many there are in all; nothing when it has no end.
  virtual std::optional<std::int64_t> size() const = 0;

  // The wall clock at virtual time 0, ticks since 1970.
  virtual Ticks epoch() const { return kDefaultEpoch; }

  // One line for a person, e.g. the file and how many requests.
  virtual std::string description() const = 0;

  // 2025-01-01 00:00:00 UTC: a fixed one, so that runs are reproducible.
  static constexpr Ticks kDefaultEpoch = 1735689600 * kTicksPerSecond;
};

// What no public trace tells of a request: how it ends, when its client gives
// up, whether it gets NaNs. Drawn for each.
void choose_fate(const WorkloadParameters& parameters, Random& random,
                 RequestSpec& spec);

// Requests from a trace file.
class TraceWorkload final : public Workload {
 public:
  // `requests` in order of arrival.
  TraceWorkload(std::string name, Ticks epoch,
                std::vector<RequestSpec> requests,
                const WorkloadParameters& parameters, std::uint64_t seed);

  Ticks next_arrival() const override;
  RequestSpec take() override;
  void apply(const WorkloadParameters& parameters, Ticks now) override;
  std::optional<std::int64_t> size() const override {
    return std::ssize(requests_);
  }
  Ticks epoch() const override { return epoch_; }
  std::string description() const override;

 private:
  std::string name_;
  Ticks epoch_;
  std::vector<RequestSpec> requests_;
  WorkloadParameters parameters_;
  std::size_t next_ = 0;
  Random random_;
};

// Made-up requests: Poisson arrivals or a number of clients, log-normal
// lengths, prompts that begin with one of a few shared texts, conversations.
// One seed, one sequence.
class SyntheticWorkload final : public Workload {
 public:
  struct Limits {
    std::int64_t max_tokens = 131072;  // of prompt and output together
    Ticks end = kNever;                // arrivals before this time only
  };
  SyntheticWorkload(const WorkloadParameters& parameters, const Limits& limits,
                    std::uint64_t seed);

  Ticks next_arrival() const override;
  RequestSpec take() override;
  void ended(const RequestSpec& spec, Ticks now) override;
  void apply(const WorkloadParameters& parameters, Ticks now) override;
  std::optional<std::int64_t> size() const override { return std::nullopt; }
  std::string description() const override;

 private:
  static constexpr std::int64_t kChunkTokens = 64;

  // A client of the closed loop and the conversation it has.
  struct Client {
    std::uint64_t conversation = 0;
    std::uint64_t text = 0;          // the shared one it begins with
    std::int64_t turns_left = 0;     // 0: the next prompt begins a new one
    std::int64_t said_tokens = 0;    // prompts and outputs so far
    std::int64_t shared_tokens = 0;  // at its beginning
  };
  using Due = std::pair<Ticks, std::int64_t>;  // a client's next request

  bool closed_loop() const { return parameters_.concurrency > 0; }
  void draw_arrival();
  void change_clients(Ticks now);
  double draw_prompt_mean();
  RequestSpec take_alone();
  RequestSpec take_turn(Client& client);
  void choose_prefix(RequestSpec& spec);

  WorkloadParameters parameters_;
  Limits limits_;
  Random random_;
  double now_ = 0.0;  // arrival of the latest request of the open loop, seconds
  std::map<std::int64_t, Client> clients_;  // by their number
  std::int64_t next_client_ = 0;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  std::uint64_t num_conversations_ = 0;
};

}  // namespace vllm_metrics::sim
