#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "vllm_metrics/loggers/log_sink.h"
#include "vllm_metrics/stats/hit_rate_window.h"
#include "vllm_metrics/stats/step_record.h"

namespace vllm_metrics::inline v0 {

// The part of the scheduler's state that the text record shows.
struct QueueState {
  std::int64_t running = 0;
  std::int64_t waiting = 0;
  std::int64_t skipped = 0;
  double kv_cache_usage = 0.0;  // 0..1
};

// What the steps since the last log() add up to, and the text of it. One for
// an engine, or for all engines together.
//
// Thread-safety: none; its logger guards it.
// Definition: vLLM LoggingStatLogger, fields 1-11 of the text record.
class LogInterval {
 public:
  explicit LogInterval(double monotonic_now) : started_(monotonic_now) {}

  void observe(const StepRecord& step);

  // One finished interval: numbers only, so that text is made outside the lock.
  struct Summary {
    LogLevel level = LogLevel::kInfo;  // kDebug when this interval and the one
                                       // before were idle
    double prompt_throughput = 0.0;    // computed prompt tokens per second
    double generation_throughput = 0.0;  // tokens per second
    std::int64_t preemptions = 0;
    std::int64_t corrupted = 0;
    double prefix_hit_rate = 0.0;  // 0..1, as the next two
    double connector_hit_rate = 0.0;
    double mm_hit_rate = 0.0;
    bool has_connector = false;  // something was ever looked up
    bool has_mm = false;
  };

  // Ends the interval and begins the next.
  Summary finish(double monotonic_now);

 private:
  double started_;
  std::int64_t computed_prompt_tokens_ = 0;
  std::int64_t generation_tokens_ = 0;
  std::int64_t preemptions_ = 0;
  std::int64_t corrupted_ = 0;
  bool was_idle_ = true;  // both throughputs of the last interval were 0
  HitRateWindow prefix_cache_;
  HitRateWindow connector_cache_;
  HitRateWindow mm_cache_;
};

// The main text record. `prefix`: "Engine 003: " or "4 Engines Aggregated: ".
std::string text_of(std::string_view prefix,
                    const LogInterval::Summary& summary,
                    const QueueState& queue, bool show_corrupted);

}  // namespace vllm_metrics::inline v0
