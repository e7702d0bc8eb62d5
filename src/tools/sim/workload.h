#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/tools/sim/random.h"
#include "src/tools/sim/request.h"

namespace vllm_metrics::sim {

// Where requests come from, in the order of their arrival.
class Workload {
 public:
  virtual ~Workload() = default;

  // Nothing when there are no more.
  virtual std::optional<RequestSpec> next() = 0;

  // How many there are in all; nothing when it has no end.
  virtual std::optional<std::int64_t> size() const = 0;

  // The wall clock at virtual time 0, ticks since 1970.
  virtual Ticks epoch() const { return kDefaultEpoch; }

  // One line for a person, e.g. the file and how many requests.
  virtual std::string description() const = 0;

  // 2025-01-01 00:00:00 UTC: a fixed one, so that runs are reproducible.
  static constexpr Ticks kDefaultEpoch = 1735689600 * kTicksPerSecond;
};

// How a request ends, which no public trace tells: drawn for each.
void choose_end(Random& random, RequestSpec& spec);

// Requests from a trace file.
class TraceWorkload final : public Workload {
 public:
  // `requests` in order of arrival.
  TraceWorkload(std::string name, Ticks epoch,
                std::vector<RequestSpec> requests, std::uint64_t seed);

  std::optional<RequestSpec> next() override;
  std::optional<std::int64_t> size() const override {
    return std::ssize(requests_);
  }
  Ticks epoch() const override { return epoch_; }
  std::string description() const override;

 private:
  std::string name_;
  Ticks epoch_;
  std::vector<RequestSpec> requests_;
  std::size_t next_ = 0;
  Random random_;
};

// Made-up requests: Poisson arrivals, log-normal lengths, prompts that begin
// with one of a few shared texts. One seed, one sequence.
class SyntheticWorkload final : public Workload {
 public:
  struct Options {
    double rate = 8.0;                 // requests per second
    double prompt_tokens = 1024.0;     // mean
    double output_tokens = 256.0;      // mean
    double prefix_share = 0.3;         // of each prompt, 0..1
    std::int64_t max_tokens = 131072;  // of prompt and output together
    Ticks end = kNever;                // arrivals before this time only
  };
  SyntheticWorkload(const Options& options, std::uint64_t seed);

  std::optional<RequestSpec> next() override;
  std::optional<std::int64_t> size() const override { return std::nullopt; }
  std::string description() const override;

 private:
  static constexpr std::int64_t kChunkTokens = 64;
  static constexpr std::uint64_t kSharedTexts = 8;

  void choose_prefix(RequestSpec& spec);

  Options options_;
  Random random_;
  double now_ = 0.0;  // arrival of the latest request, seconds
};

}  // namespace vllm_metrics::sim
