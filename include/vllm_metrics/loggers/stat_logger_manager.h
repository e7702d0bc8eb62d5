#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "vllm_metrics/export.h"
#include "vllm_metrics/loggers/options.h"
#include "vllm_metrics/loggers/stat_logger.h"
#include "vllm_metrics/stats/iteration_stats.h"
#include "vllm_metrics/stats/scheduler_stats.h"

namespace vllm_metrics::inline v0 {

class Registry;

// What an engine talks to: hands each step to all stat loggers, and tells them
// when a log interval has passed.
//
// The loggers, in this order: those of options.factories; the default text
// logger (one per engine, or the aggregated one); the Prometheus logger, unless
// one of the factories made its like.
//
// Thread-safety: every member from any thread. Steps of one engine index run
// one after the other, steps of different indexes at once; log() may overlap
// both. record_admission_rejection() and record_operation() take no lock.
// record() takes one, which only another record() of the same engine or
// record_sleep_state() can hold; a scrape or log() never makes it wait. Errors:
// create() returns InvalidArgument naming the option, its value and what is
// allowed, and passes on the error of a factory. The other members are noexcept
// and return nothing: a logger that throws is reported once and counted, an
// undeclared engine index is reported once and its steps counted. Lifetime:
// destroying it takes its families off the page; a scrape that runs meanwhile
// is safe. The engine's threads must have stopped calling it. Definition: vLLM
// StatLoggerManager. vLLM v1/metrics/loggers.py.
class VLLM_METRICS_EXPORT StatLoggerManager {
 public:
  static absl::StatusOr<std::unique_ptr<StatLoggerManager>> create(
      StatLoggerOptions options);
  ~StatLoggerManager();
  StatLoggerManager(const StatLoggerManager&) = delete;
  StatLoggerManager& operator=(const StatLoggerManager&) = delete;

  // One step of engine `engine_index`. Null: that part did not change. Nothing
  // is kept of what the pointers point to.
  void record(const SchedulerStats* scheduler, const IterationStats* iteration,
              const MultiModalCacheStats* mm_cache = nullptr,
              int engine_index = 0) noexcept;

  // A log interval has passed; call it every 10 s or so, from any one thread.
  void log() noexcept;

  // Once the engines know how many KV blocks they have.
  void log_engine_initialized() noexcept;

  // All engines went to sleep or woke up.
  void record_sleep_state(const SleepState& state) noexcept;

  // A request was refused, since the queue was full: it will be in no step.
  // Once for each attempt, whatever its n. On the page from wire_version
  // {0, 32} on, without an engine label.
  void record_admission_rejection(AdmissionLimit limit) noexcept;

  // A call that put the engines to sleep, woke them or brought them new weights
  // has returned or failed, after `seconds`. On the page from wire_version
  // {0, 32} on, without engine and model_name labels.
  void record_operation(EngineOperation operation, double seconds) noexcept;

  // The page: scrape it with TextFormat, serve it with http::Exposer, add your
  // own metrics to it. Lives as long as you hold it.
  const std::shared_ptr<Registry>& registry() const noexcept;

 private:
  struct State;
  explicit StatLoggerManager(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace vllm_metrics::inline v0
