#include "vllm_metrics/loggers/logging_stat_logger.h"

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "src/loggers/engine_index_map.h"
#include "src/loggers/options_check.h"
#include "src/loggers/text_log.h"
#include "src/loggers/unexpected_engines.h"
#include "src/registry/mutex.h"
#include "vllm_metrics/stats/saturating_add.h"

namespace vllm_metrics::inline v0 {
namespace {

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
  State(const StatLoggerOptions& given, int engine_index)
      : options(with_defaults(given)),
        index(engine_index),
        prefix(fmt::format("Engine {:03d}: ", engine_index)),
        text(options, prefix, engine_index, TextLog::Mfu::kShown) {}

  const StatLoggerOptions options;
  const int index;
  const std::string prefix;
  Mutex mutex;
  TextLog text;  // observe() and begin_next() under the lock
  QueueState queue ABSL_GUARDED_BY(mutex);
};

LoggingStatLogger::LoggingStatLogger(const StatLoggerOptions& options,
                                     int engine_index)
    : state_(std::make_unique<State>(options, engine_index)) {}
LoggingStatLogger::~LoggingStatLogger() = default;

void LoggingStatLogger::record(const StepRecord& step) {
  {
    const MutexLock lock(state_->mutex);
    state_->text.observe(step);
    if (step.scheduler != nullptr)
      state_->queue = QueueState::of(*step.scheduler);
  }
  write_iteration_details(state_->options, step);
}

void LoggingStatLogger::log() {
  QueueState queue;
  {
    const MutexLock lock(state_->mutex);
    state_->text.begin_next();
    queue = state_->queue;
  }
  state_->text.write(queue);
}

void LoggingStatLogger::log_engine_initialized() {
  write_initialized(state_->options, LogLevel::kDebug, state_->index,
                    state_->prefix);
}

struct AggregatedLoggingStatLogger::State {
  explicit State(const StatLoggerOptions& given)
      : options(with_defaults(given)),
        prefix(fmt::format("{} Engines Aggregated: ",
                           options.engine_indexes.size())),
        places(options.engine_indexes),
        unexpected(options),
        text(options, prefix, LogSink::kNoEngine, TextLog::Mfu::kLeftOut),
        queues(options.engine_indexes.size()) {}

  QueueState all_queues() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    QueueState all;
    for (const QueueState& queue : queues) {
      saturating_add_to(all.running, queue.running);
      saturating_add_to(all.waiting, queue.waiting);
      saturating_add_to(all.skipped, queue.skipped);
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
  TextLog text;  // observe() and begin_next() under the lock
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
  {
    const MutexLock lock(state_->mutex);
    state_->text.observe(step);
    if (step.scheduler != nullptr) {
      state_->queues[*place] = QueueState::of(*step.scheduler);
    }
  }
  write_iteration_details(state_->options, step);
}

void AggregatedLoggingStatLogger::log() {
  QueueState queue;
  {
    const MutexLock lock(state_->mutex);
    state_->text.begin_next();
    queue = state_->all_queues();
  }
  state_->text.write(queue);
}

void AggregatedLoggingStatLogger::log_engine_initialized() {
  write_initialized(
      state_->options, LogLevel::kInfo, LogSink::kNoEngine,
      fmt::format("{} Engines: ", state_->options.engine_indexes.size()));
}

}  // namespace vllm_metrics::inline v0
