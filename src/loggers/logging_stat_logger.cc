#include "vllm_metrics/loggers/logging_stat_logger.h"

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "src/loggers/engine_index_map.h"
#include "src/loggers/log_interval.h"
#include "src/loggers/options_check.h"
#include "src/loggers/unexpected_engines.h"
#include "src/registry/mutex.h"

namespace vllm_metrics::inline v0 {
namespace {

QueueState queue_of(const SchedulerStats& scheduler) {
  return {scheduler.num_running_reqs, scheduler.num_waiting_reqs,
          scheduler.num_skipped_waiting_reqs, scheduler.kv_cache_usage};
}

// The record of log_engine_initialized(), unless there are no blocks to tell
// of.
void write_initialized(const StatLoggerOptions& options, LogLevel level,
                       int engine, std::string_view prefix) {
  if (options.num_gpu_blocks.value_or(0) == 0 ||
      options.log_sink->minimum_level() > level)
    return;
  options.log_sink->write(
      level, options.clock->wall(), engine,
      fmt::format("{}vllm cache_config_info with initialization after "
                  "num_gpu_blocks is: {}",
                  prefix, *options.num_gpu_blocks));
}

}  // namespace

struct LoggingStatLogger::State {
  State(const StatLoggerOptions& given, int index)
      : options(with_defaults(given)),
        engine_index(index),
        prefix(fmt::format("Engine {:03d}: ", index)),
        interval(options.clock->monotonic()) {}

  const StatLoggerOptions options;
  const int engine_index;
  const std::string prefix;
  Mutex mutex;
  LogInterval interval ABSL_GUARDED_BY(mutex);
  QueueState queue ABSL_GUARDED_BY(mutex);
};

LoggingStatLogger::LoggingStatLogger(const StatLoggerOptions& options,
                                     int engine_index)
    : state_(std::make_unique<State>(options, engine_index)) {}
LoggingStatLogger::~LoggingStatLogger() = default;

void LoggingStatLogger::record(const StepRecord& step) {
  const MutexLock lock(state_->mutex);
  state_->interval.observe(step);
  if (step.scheduler != nullptr) state_->queue = queue_of(*step.scheduler);
}

void LoggingStatLogger::log() {
  const StatLoggerOptions& options = state_->options;
  LogInterval::Summary summary;
  QueueState queue;
  {
    const MutexLock lock(state_->mutex);
    summary = state_->interval.finish(options.clock->monotonic());
    queue = state_->queue;
  }
  if (options.log_sink->minimum_level() > summary.level) return;
  options.log_sink->write(
      summary.level, options.clock->wall(), state_->engine_index,
      text_of(state_->prefix, summary, queue, options.compute_nans_in_logits));
}

void LoggingStatLogger::log_engine_initialized() {
  write_initialized(state_->options, LogLevel::kDebug, state_->engine_index,
                    state_->prefix);
}

struct AggregatedLoggingStatLogger::State {
  explicit State(const StatLoggerOptions& given)
      : options(with_defaults(given)),
        prefix(fmt::format("{} Engines Aggregated: ",
                           options.engine_indexes.size())),
        places(options.engine_indexes),
        unexpected(options),
        interval(options.clock->monotonic()),
        queues(options.engine_indexes.size()) {}

  QueueState all_queues() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    QueueState all;
    for (const QueueState& queue : queues) {
      all.running += queue.running;
      all.waiting += queue.waiting;
      all.skipped += queue.skipped;
      all.kv_cache_usage += queue.kv_cache_usage;
    }
    all.kv_cache_usage /= static_cast<double>(queues.size());
    return all;
  }

  const StatLoggerOptions options;
  const std::string prefix;
  const EngineIndexMap places;
  UnexpectedEngines unexpected;
  Mutex mutex;
  LogInterval interval ABSL_GUARDED_BY(mutex);
  std::vector<QueueState> queues
      ABSL_GUARDED_BY(mutex);  // one per declared engine
};

AggregatedLoggingStatLogger::AggregatedLoggingStatLogger(
    const StatLoggerOptions& options)
    : state_(std::make_unique<State>(options)) {}
AggregatedLoggingStatLogger::~AggregatedLoggingStatLogger() = default;

void AggregatedLoggingStatLogger::record(const StepRecord& step) {
  const auto place = state_->places.find(step.engine_index);
  if (!place.has_value()) return state_->unexpected.report(step.engine_index);
  const MutexLock lock(state_->mutex);
  state_->interval.observe(step);
  if (step.scheduler != nullptr)
    state_->queues[*place] = queue_of(*step.scheduler);
}

void AggregatedLoggingStatLogger::log() {
  const StatLoggerOptions& options = state_->options;
  LogInterval::Summary summary;
  QueueState queue;
  {
    const MutexLock lock(state_->mutex);
    summary = state_->interval.finish(options.clock->monotonic());
    queue = state_->all_queues();
  }
  if (options.log_sink->minimum_level() > summary.level) return;
  options.log_sink->write(
      summary.level, options.clock->wall(), LogSink::kNoEngine,
      text_of(state_->prefix, summary, queue, options.compute_nans_in_logits));
}

void AggregatedLoggingStatLogger::log_engine_initialized() {
  write_initialized(
      state_->options, LogLevel::kInfo, LogSink::kNoEngine,
      fmt::format("{} Engines: ", state_->options.engine_indexes.size()));
}

}  // namespace vllm_metrics::inline v0
