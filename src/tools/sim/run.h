#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/tools/sim/progress_line.h"
#include "src/tools/sim/real_time.h"
#include "src/tools/sim/simulation.h"
#include "src/tools/sim/virtual_time.h"

namespace vllm_metrics::sim {

class Run;

// Changes a run from outside.
class RunControl {
 public:
  virtual ~RunControl() = default;

  // On the run's thread, before each event and while it waits for one: does
  // what was asked for meanwhile. True when something has changed. Has to be
  // fast when nothing was.
  virtual bool visit(Run& run) = 0;
};

// Lets a simulation happen at the speed asked for, until every request is
// served, the end is reached, or a signal came.
class Run {
 public:
  // Makes a simulation on this registry, null for one of its own.
  using Factory = std::function<absl::StatusOr<std::unique_ptr<Simulation>>(
      const SimOptions&, std::shared_ptr<Registry>)>;

  // `simulation` is what the factory made.
  Run(std::unique_ptr<Simulation> simulation, Factory factory, RealTime& time,
      ProgressLine& progress, Ticks end)
      : simulation_(std::move(simulation)),
        factory_(std::move(factory)),
        time_(time),
        progress_(progress),
        end_(end) {}

  // Calls `stop(i)` at the i-th of these times, after all that happens then.
  void stop_at(std::vector<Ticks> times,
               std::function<void(std::size_t)> stop) {
    stops_ = std::move(times);
    stop_ = std::move(stop);
  }

  void set_control(RunControl* control) { control_ = control; }

  void to_end();

  // Begins again at virtual time 0, on the same registry.
  // Errors: those of the factory; the run cannot go on then unless another
  // restart succeeds.
  absl::Status restart(const SimOptions& options);

  Simulation& simulation() { return *simulation_; }
  const Simulation& simulation() const { return *simulation_; }
  RealTime& time() { return time_; }

 private:
  void look();
  bool wait_until(Ticks then);
  std::string progress_text() const;

  std::unique_ptr<Simulation> simulation_;
  Factory factory_;
  RealTime& time_;
  ProgressLine& progress_;
  Ticks end_;
  std::vector<Ticks> stops_;
  std::size_t next_stop_ = 0;
  std::function<void(std::size_t)> stop_;
  RunControl* control_ = nullptr;
  double next_look_ = 0.0;  // real seconds
};

}  // namespace vllm_metrics::sim
