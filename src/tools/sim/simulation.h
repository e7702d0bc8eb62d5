#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/tools/sim/device_gauges.h"
#include "src/tools/sim/engine_core.h"
#include "src/tools/sim/parameters.h"
#include "src/tools/sim/run_report.h"
#include "src/tools/sim/scenario.h"
#include "src/tools/sim/sim_options.h"
#include "src/tools/sim/step_cost.h"
#include "src/tools/sim/virtual_time.h"
#include "src/tools/sim/workload.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"
#include "vllm_metrics/registry/registry.h"
#include "vllm_metrics/stats/lora_stats.h"

namespace vllm_metrics::sim {

// The front end of a serving system and its engines, driven by events in
// virtual time: a request arrives, a step ends, a log interval has passed.
//
// The caller asks for the time of the next event, waits for it or not, and lets
// it happen; between two events it may change parameters. One thread does all
// of this; the page may be scraped meanwhile.
class Simulation {
 public:
  // `finished` is called with each request that ends; empty for none. A null
  // `registry` is one of its own. `loggers` are told of each step.
  struct Hooks {
    std::shared_ptr<LogSink> log_sink;
    std::function<void(int engine, const Request& request)> finished;
    std::shared_ptr<Registry> registry = nullptr;
    std::vector<StatLoggerFactory> loggers = {};
  };

  static absl::StatusOr<std::unique_ptr<Simulation>> create(
      const SimOptions& options, std::unique_ptr<Workload> workload,
      Hooks hooks);
  ~Simulation();

  // kNever when every request has been served.
  Ticks next_event() const;

  // Lets happen what is due at `now`, which is next_event().
  void run_event(Ticks now);

  // Time passes without an event; not beyond next_event().
  void advance_to(Ticks now);

  // Writes the log lines of the last, incomplete interval.
  void finish();

  // Changes parameters. Those of workload and scheduler hold for what arrives
  // and for the steps that begin from now on. Where those of the engine differ,
  // it is restarted: its counters begin at 0, and the requests in it are served
  // from their beginning.
  // Errors: those of validate(); nothing has changed then.
  absl::Status apply(const Parameters& parameters);
  const Parameters& parameters() const { return parameters_; }

  Ticks now() const { return clock_->now(); }
  bool kv_cache_limited() const {
    return cost_->num_gpu_blocks() != KvBlockPool::kUnlimited;
  }
  std::int64_t num_running() const;
  std::int64_t num_waiting() const;
  const RunReport& report() const { return report_; }
  const Workload& workload() const { return *workload_; }
  double record_seconds() const { return record_seconds_; }
  const std::shared_ptr<Registry>& registry() const { return registry_; }

 private:
  // An engine with what the front end keeps for it.
  struct Rank {
    template <class... Engine>
    explicit Rank(int engine_index, Engine&&... engine)
        : index(engine_index), core(std::forward<Engine>(engine)...) {}

    int index;
    EngineCore core;
    std::vector<std::unique_ptr<Request>> inbox;  // between two of its steps
    Ticks step_begin = 0;
    Ticks step_end = kNever;  // kNever: it sleeps
    IterationStats iteration;
    LoraRequestStates lora;

    // Since the last record(), for the simulator's own metrics.
    std::int64_t arrived = 0;
    std::int64_t refused = 0;
    std::vector<double> front_end_delays;  // of requests that finished
  };

  Simulation(const SimOptions& options, std::unique_ptr<Workload> workload,
             Hooks hooks);
  absl::Status start_engines();
  std::shared_ptr<const KvConnectorMetrics> connector() const;
  StatLoggerOptions logger_options();
  StepMetrics own_metrics();

  void accept_request(RequestSpec spec);
  Rank& rank_for(const RequestSpec& spec);
  Rank& least_loaded_rank();
  void start_step(Rank& rank, Ticks now);
  void end_step(Rank& rank, Ticks now);
  void add_output(Rank& rank, const EngineCore::Output& output, Ticks now);
  void end_request(Rank& rank, Request& request, Ticks now);
  void record(Rank& rank, const IterationStats* iteration);
  void begin_weight_update(Ticks now);
  void end_weight_update();

  SimOptions options_;     // but for its parameters
  Parameters parameters_;  // of now
  const Scenario* scenario_;
  Ticks next_change_;  // of the scenario
  std::unique_ptr<Workload> workload_;
  Hooks hooks_;
  Ticks log_interval_;  // kNever: no log lines
  Ticks next_log_;
  std::shared_ptr<VirtualClock> clock_;
  std::shared_ptr<Registry> registry_;
  std::optional<StepCostModel> cost_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::unique_ptr<StatLoggerManager> manager_;
  std::optional<DeviceGauges> devices_;
  std::optional<Handle<Gauge>> seconds_gauge_;

  Ticks next_weight_update_ = kNever;
  Ticks asleep_until_ = kNever;  // kNever: the engines are awake

  std::int64_t num_requests_ = 0;
  std::size_t next_rank_ = 0;  // where equally loaded ranks are tried first
  RunReport report_;
  double record_seconds_ = 0.0;  // real
};

}  // namespace vllm_metrics::sim
