#include "src/loggers/log_interval.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace vllm_metrics::inline v0 {
namespace {

// C++ may show the sign of a NaN; Python, whose text this is, never does.
double unsigned_nan(double v) { return std::isnan(v) ? std::fabs(v) : v; }

double percent(double ratio) { return unsigned_nan(ratio * 100.0); }

}  // namespace

void LogInterval::observe(const StepRecord& step) {
  if (step.iteration != nullptr) {
    computed_prompt_tokens_ += step.iteration->prompt_token_stats.computed;
    generation_tokens_ += step.iteration->num_generation_tokens;
    preemptions_ += step.iteration->num_preempted_reqs;
    corrupted_ += step.iteration->num_corrupted_reqs;
  }
  if (step.scheduler != nullptr) {
    prefix_cache_.observe(step.scheduler->prefix_cache_stats);
    if (step.scheduler->connector_prefix_cache_stats.has_value()) {
      connector_cache_.observe(*step.scheduler->connector_prefix_cache_stats);
    }
  }
  if (step.mm_cache != nullptr) mm_cache_.observe(*step.mm_cache);
}

LogInterval::Summary LogInterval::finish(double monotonic_now) {
  const double elapsed = monotonic_now - started_;
  const auto per_second = [elapsed](std::int64_t n) {
    return elapsed > 0.0 ? static_cast<double>(n) / elapsed : 0.0;
  };
  Summary summary;
  summary.prompt_throughput = per_second(computed_prompt_tokens_);
  summary.generation_throughput = per_second(generation_tokens_);
  summary.preemptions = preemptions_;
  summary.corrupted = corrupted_;
  summary.prefix_hit_rate = prefix_cache_.hit_rate();
  summary.connector_hit_rate = connector_cache_.hit_rate();
  summary.mm_hit_rate = mm_cache_.hit_rate();
  summary.has_connector = !connector_cache_.empty();
  summary.has_mm = !mm_cache_.empty();

  const bool idle =
      summary.prompt_throughput == 0.0 && summary.generation_throughput == 0.0;
  summary.level = idle && was_idle_ ? LogLevel::kDebug : LogLevel::kInfo;
  was_idle_ = idle;
  started_ = monotonic_now;
  computed_prompt_tokens_ = generation_tokens_ = preemptions_ = corrupted_ = 0;
  return summary;
}

std::string text_of(std::string_view prefix,
                    const LogInterval::Summary& summary,
                    const QueueState& queue, bool show_corrupted) {
  fmt::memory_buffer text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out,
                 "{}Avg prompt throughput: {:.1f} tokens/s, Avg generation "
                 "throughput: {:.1f} tokens/s, "
                 "Running: {} reqs, Waiting: {} reqs",
                 prefix, summary.prompt_throughput,
                 summary.generation_throughput, queue.running,
                 queue.waiting + queue.skipped);
  if (queue.skipped > 0)
    fmt::format_to(out, ", Deferred: {} reqs", queue.skipped);
  if (summary.preemptions > 0)
    fmt::format_to(out, ", Preemptions: {}", summary.preemptions);
  fmt::format_to(
      out, ", GPU KV cache usage: {:.1f}%, Prefix cache hit rate: {:.1f}%",
      percent(queue.kv_cache_usage), percent(summary.prefix_hit_rate));
  if (show_corrupted)
    fmt::format_to(out, ", Corrupted: {} reqs", summary.corrupted);
  if (summary.has_connector) {
    fmt::format_to(out, ", External prefix cache hit rate: {:.1f}%",
                   percent(summary.connector_hit_rate));
  }
  if (summary.has_mm)
    fmt::format_to(out, ", MM cache hit rate: {:.1f}%",
                   percent(summary.mm_hit_rate));
  return fmt::to_string(text);
}

}  // namespace vllm_metrics::inline v0
