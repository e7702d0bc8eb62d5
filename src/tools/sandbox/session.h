#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "src/tools/sandbox/controls.h"
#include "src/tools/sim/run.h"
#include "src/tools/sim/scenario.h"
#include "src/tools/sim/sim_options.h"

namespace vllm_metrics::sandbox {

// What the page has asked of a running simulation, and what became of it.
// Orders come from the endpoint's thread and are carried out on the run's,
// between two steps.
//
// Thread-safety: visit() on the run's thread, all else from any.
class Session final : public sim::RunControl {
 public:
  static constexpr double kMinSpeed = 0.1;
  static constexpr double kMaxSpeed = 100.0;
  static constexpr std::uint64_t kMaxSeed = std::uint64_t{1} << 53;
  // With more requests waiting the simulation is paused: an open loop above
  // capacity would otherwise fill the memory.
  static constexpr std::int64_t kMaxWaiting = 20'000;

  explicit Session(const sim::SimOptions& options);

  // What the run is to begin with.
  sim::SimOptions first_options() const;

  // Takes an object of `parameters`, `speed`, `paused`, `seed`, `scenario` and
  // `reset`, all optional. A scenario or a seed begins anew, as `reset` does.
  // Errors: InvalidArgument with field, value and what is allowed; nothing has
  // changed then.
  absl::Status order(const Json& wanted);

  // All that can be ordered, as it is now; `revision` counts orders, `applied`
  // those that the simulation goes by, `message` is what the run has to say.
  Json state() const;

  // Counts orders and what the session did by itself.
  std::uint64_t revision() const;

  bool visit(sim::Run& run) override;

 private:
  struct Settings {
    sim::Parameters parameters;
    double speed = 1.0;
    bool paused = false;
    std::uint64_t seed = 0;
    std::string scenario;
  };

  absl::Status read(const Json& wanted, Settings& settings, bool& reset) const;
  absl::Status carry_out(sim::Run& run);
  bool keep_watch(sim::Run& run);

  mutable std::mutex mutex_;
  sim::SimOptions options_;  // but for what the settings have
  Settings settings_;
  bool reset_ = false;
  std::uint64_t revision_ = 0;
  std::uint64_t applied_ = 0;
  std::string message_;

  std::atomic<bool> pending_{true};
  sim::Ticks next_change_ = sim::kNever;  // of the scenario; the run's thread
};

}  // namespace vllm_metrics::sandbox
