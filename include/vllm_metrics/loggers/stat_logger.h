#pragma once

#include <string_view>

#include "vllm_metrics/export.h"
#include "vllm_metrics/stats/step_record.h"

namespace vllm_metrics::inline v0 {

// The arguments of a sleep or wake-up call. Definition: vLLM
// StatLoggerBase.record_sleep_state.
struct SleepState {
  int sleep = 0;  // 1: asleep; anything else: awake
  int level = 0;  // asleep: 1 = weights offloaded, 2 = everything discarded
};

// Which cap of the queue refused a request at the door: the values of the label
// `reason`, max_num_queued_reqs and max_num_queued_tokens.
enum class AdmissionLimit { kQueuedRequests, kQueuedTokens };

// A call of the front end to its engines that takes a while: values of the
// label `operation`, of sleep mode first, then of an update of the weights.
enum class EngineOperation {
  kSleep,
  kReleaseKvCacheMemory,
  kWake,
  kWeightInit,
  kWeightStart,
  kWeightStartDraft,
  kWeightUpdate,
  kWeightFinish,
};

// The extension point: derive from this to send each step's statistics
// somewhere new, and pass a factory in StatLoggerOptions::factories.
// examples/03_custom_stat_logger.cc is a whole one.
//
// [Threading] record() and log() run on the thread that called the manager's
//   record() and log(). With several engines those are several threads; calls
//   of record() for one engine index never overlap. log() may overlap record():
//   guard what both touch. record_admission_rejection() and record_operation()
//   come from any thread, several at once, and overlap everything.
// [Time] record() sits between two forward passes. Copy what you need and
//   return; write files and sockets from log() or from your own thread.
// [Lifetime] `step` and all it points to die when record() returns.
// [Errors] Do not throw. A logger that does is reported once by name, counted
//   in `vllm_metrics_logger_errors_total`, and called again at the next step.
// [Re-entry] Do not call the manager from inside a callback.
// [Compatibility] Within one inline version namespace (v0) no virtual function
//   is removed, reordered or changed, and StepRecord and the stats structs only
//   get new fields at their end. New virtual functions come last and have a
//   body, so a logger keeps compiling. A change that needs more gets a new
//   inline namespace: old binaries then fail to link instead of misbehaving.
class VLLM_METRICS_EXPORT StatLoggerBase {
 public:
  StatLoggerBase() = default;
  StatLoggerBase(const StatLoggerBase&) = delete;
  StatLoggerBase& operator=(const StatLoggerBase&) = delete;
  virtual ~StatLoggerBase();

  // Names this logger in messages and self-metrics, e.g. "kafka". Stable.
  virtual std::string_view name() const = 0;

  // One engine step. Any pointer in `step` may be null: that part did not
  // change. Counts are deltas of this step; gauges are the state after it.
  virtual void record(const StepRecord& step) = 0;

  // Called from the manager's log(), when the log interval has passed.
  virtual void log() {}

  // The engines know their KV cache size now (StatLoggerOptions::cache_config).
  virtual void log_engine_initialized() {}

  // All engines went to sleep or woke up.
  virtual void record_sleep_state(const SleepState&) {}

  // True for a logger that puts vLLM's families on the page itself: the manager
  // then leaves out its own PrometheusStatLogger.
  virtual bool exposes_catalogue() const { return false; }

  // A request was refused before any engine saw it. Not passed on to loggers
  // that are made for each engine.
  virtual void record_admission_rejection(AdmissionLimit) {}

  // Such a call has returned or failed, after `seconds`. Not passed on to
  // loggers that are made for each engine.
  virtual void record_operation(EngineOperation, double /*seconds*/) {}
};

}  // namespace vllm_metrics::inline v0
