#pragma once

#include <memory>
#include <string_view>

#include "vllm_metrics/export.h"
#include "vllm_metrics/loggers/options.h"
#include "vllm_metrics/loggers/stat_logger.h"

namespace vllm_metrics::inline v0 {

// Writes vLLM's text record of one engine at each log(): throughput, queue,
// KV cache usage and hit rates since the last one.
//
// Thread-safety: as StatLoggerBase asks; record() takes an uncontended lock.
// Time: elapsed time is the clock's monotonic one between two log() calls; the
// first interval begins at construction.
// Definition: vLLM LoggingStatLogger. vLLM v1/metrics/loggers.py; here the
// counts of preemptions and corrupted requests are those of the interval.
class VLLM_METRICS_EXPORT LoggingStatLogger : public StatLoggerBase {
 public:
  // Reads of `options`: clock, log_sink, num_gpu_blocks,
  // compute_nans_in_logits.
  LoggingStatLogger(const StatLoggerOptions& options, int engine_index);
  ~LoggingStatLogger() override;

  std::string_view name() const override { return "logging"; }
  void record(const StepRecord& step) override;
  void log() override;
  void log_engine_initialized() override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The same for all engines in one record: counts add up, KV cache usage is the
// mean over the declared engines (one never heard of counts as 0).
//
// Definition: vLLM AggregatedLoggingStatLogger.
class VLLM_METRICS_EXPORT AggregatedLoggingStatLogger : public StatLoggerBase {
 public:
  // Reads also options.engine_indexes.
  explicit AggregatedLoggingStatLogger(const StatLoggerOptions& options);
  ~AggregatedLoggingStatLogger() override;

  std::string_view name() const override { return "aggregated_logging"; }
  void record(const StepRecord& step) override;
  void log() override;
  void log_engine_initialized() override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vllm_metrics::inline v0
