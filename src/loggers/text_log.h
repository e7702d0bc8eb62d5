#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "src/loggers/log_interval.h"
#include "src/registry/mutex.h"
#include "vllm_metrics/loggers/options.h"
#include "vllm_metrics/stats/hit_rate_window.h"

namespace vllm_metrics::inline v0 {

// The part of the scheduler's state that the text record shows.
struct QueueState {
  std::int64_t running = 0;
  std::int64_t waiting = 0;
  std::int64_t skipped = 0;
  double kv_cache_usage = 0.0;  // 0..1

  static QueueState of(const SchedulerStats& scheduler) {
    return {scheduler.num_running_reqs, scheduler.num_waiting_reqs,
            scheduler.num_skipped_waiting_reqs, scheduler.kv_cache_usage};
  }
};

// The text records of one engine, or of all together: the main one at each
// log(), behind it those of the features that were used.
//
// Two intervals take turns: steps add to one while the text of the other is
// made, so that a step never waits for formatting or for the sink.
//
// Thread-safety: observe() and begin_next() under the logger's lock; write() by
// the thread that called begin_next(), without it. One log() at a time.
// Definition: vLLM LoggingStatLogger, and the record's fields in that order.
class TextLog {
 public:
  enum class Mfu { kShown, kLeftOut };

  // `prefix`: "Engine 003: " or "4 Engines Aggregated: ". `engine`: for the
  // sink. `options` outlives this.
  TextLog(const StatLoggerOptions& options, std::string prefix, int engine,
          Mfu mfu);

  void observe(const StepRecord& step);

  // Ends the interval at the clock's time and begins the next.
  void begin_next();

  // Writes the records of the interval that begin_next() ended.
  void write(const QueueState& queue);

 private:
  // What of the cache windows and the clock belongs to the ended interval.
  struct Ended {
    double now = 0.0;      // monotonic
    double elapsed = 0.0;  // seconds
    double prefix_hit_rate = 0.0;
    double connector_hit_rate = 0.0;
    double mm_hit_rate = 0.0;
    bool has_connector = false;  // something was ever looked up
    bool has_mm = false;
  };

  LogInterval& ended_interval() { return intervals_[1 - active_]; }
  std::string main_text(const LogInterval& interval, double prompt_throughput,
                        double generation_throughput,
                        const QueueState& queue) const;
  void write_follow_ups(LogInterval& interval, LogLevel level);
  void write_mfu(const LogInterval& interval, LogLevel level);
  void write(LogLevel level, std::string_view text) const;
  bool shows(LogLevel level) const;

  const StatLoggerOptions& options_;
  const std::string prefix_;
  const int engine_;
  const Mfu mfu_;

  std::array<LogInterval, 2> intervals_;
  std::size_t active_ = 0;
  HitRateWindow prefix_cache_;
  HitRateWindow connector_cache_;
  HitRateWindow mm_cache_;

  Ended ended_;
  double interval_start_;
  double spec_decoding_start_;  // each restarts only when its record is due
  double mfu_start_;
  bool was_idle_ = true;  // both throughputs of the interval before were 0
};

// The record of one step in detail, written when it is recorded. `engine` is
// the engine that recorded it.
void write_iteration_details(const StatLoggerOptions& options,
                             const StepRecord& step);

}  // namespace vllm_metrics::inline v0
