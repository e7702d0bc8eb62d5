#include "src/loggers/text_log.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "src/loggers/python_text.h"
#include "vllm_metrics/stats/saturating_add.h"

namespace vllm_metrics::inline v0 {
namespace {

double percent(double ratio) { return unsigned_nan(ratio * 100.0); }

double per_second(std::int64_t n, double elapsed) {
  return elapsed > 0.0 ? static_cast<double>(n) / elapsed : 0.0;
}

}  // namespace

TextLog::TextLog(const StatLoggerOptions& options, std::string prefix,
                 int engine, Mfu mfu)
    : options_(options),
      prefix_(std::move(prefix)),
      engine_(engine),
      mfu_(options.enable_mfu_metrics ? mfu : Mfu::kLeftOut),
      intervals_{LogInterval(options), LogInterval(options)},
      interval_start_(options.clock->monotonic()),
      spec_decoding_start_(interval_start_),
      mfu_start_(interval_start_) {}

void TextLog::observe(const StepRecord& step) {
  intervals_[active_].observe(step);
  if (step.scheduler != nullptr) {
    prefix_cache_.observe(step.scheduler->prefix_cache_stats);
    if (step.scheduler->connector_prefix_cache_stats.has_value()) {
      connector_cache_.observe(*step.scheduler->connector_prefix_cache_stats);
    }
  }
  if (step.mm_cache != nullptr) mm_cache_.observe(*step.mm_cache);
}

void TextLog::begin_next() {
  const double now = options_.clock->monotonic();
  ended_ = {.now = now,
            .elapsed = now - interval_start_,
            .prefix_hit_rate = prefix_cache_.hit_rate(),
            .connector_hit_rate = connector_cache_.hit_rate(),
            .mm_hit_rate = mm_cache_.hit_rate(),
            .has_connector = !connector_cache_.empty(),
            .has_mm = !mm_cache_.empty()};
  interval_start_ = now;
  active_ = 1 - active_;
}

void TextLog::write(const QueueState& queue) {
  LogInterval& interval = ended_interval();
  const double prompt =
      per_second(interval.computed_prompt_tokens, ended_.elapsed);
  const double generation =
      per_second(interval.generation_tokens, ended_.elapsed);
  const bool idle = prompt == 0.0 && generation == 0.0;
  const LogLevel level = idle && was_idle_ ? LogLevel::kDebug : LogLevel::kInfo;
  was_idle_ = idle;
  if (shows(level))
    write(level, main_text(interval, prompt, generation, queue));
  write_follow_ups(interval, level);
  interval.reset();
}

std::string TextLog::main_text(const LogInterval& interval,
                               double prompt_throughput,
                               double generation_throughput,
                               const QueueState& queue) const {
  fmt::memory_buffer text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out,
                 "{}Avg prompt throughput: {:.1f} tokens/s, Avg generation "
                 "throughput: {:.1f} tokens/s, "
                 "Running: {} reqs, Waiting: {} reqs",
                 prefix_, prompt_throughput, generation_throughput,
                 queue.running, saturating_add(queue.waiting, queue.skipped));
  if (queue.skipped > 0)
    fmt::format_to(out, ", Deferred: {} reqs", queue.skipped);
  if (interval.preemptions > 0)
    fmt::format_to(out, ", Preemptions: {}", interval.preemptions);
  fmt::format_to(
      out, ", GPU KV cache usage: {:.1f}%, Prefix cache hit rate: {:.1f}%",
      percent(queue.kv_cache_usage), percent(ended_.prefix_hit_rate));
  if (options_.compute_nans_in_logits)
    fmt::format_to(out, ", Corrupted: {} reqs", interval.corrupted);
  if (ended_.has_connector) {
    fmt::format_to(out, ", External prefix cache hit rate: {:.1f}%",
                   percent(ended_.connector_hit_rate));
  }
  if (ended_.has_mm)
    fmt::format_to(out, ", MM cache hit rate: {:.1f}%",
                   percent(ended_.mm_hit_rate));
  return fmt::to_string(text);
}

void TextLog::write_follow_ups(LogInterval& interval, LogLevel level) {
  if (!interval.spec_decoding.empty()) {
    const double elapsed =
        ended_.now - std::exchange(spec_decoding_start_, ended_.now);
    if (shows(level)) {
      write(level, options_.is_diffusion
                       ? interval.spec_decoding.diffusion_text(elapsed)
                       : interval.spec_decoding.speculative_text(elapsed));
    }
  }
  if (interval.connector_has_data) {
    std::string text = "KV Transfer metrics: ";
    interval.connector->finish(text);
    if (shows(level)) write(level, text);
  }
  if (options_.cudagraph.has_value() && !interval.cuda_graphs.empty() &&
      shows(level)) {
    write(level, interval.cuda_graphs.text(*options_.cudagraph));
  }
  if (mfu_ == Mfu::kShown && !interval.perf.empty()) write_mfu(interval, level);
}

void TextLog::write_mfu(const LogInterval& interval, LogLevel level) {
  const double elapsed = ended_.now - std::exchange(mfu_start_, ended_.now);
  if (shows(level)) write(level, interval.perf.text(prefix_, elapsed));
  if (options_.debug_mfu_metrics && shows(LogLevel::kDebug)) {
    write(LogLevel::kDebug, interval.perf.details(prefix_, elapsed));
  }
}

bool TextLog::shows(LogLevel level) const {
  return options_.log_sink->minimum_level() <= level;
}

void TextLog::write(LogLevel level, std::string_view text) const {
  options_.log_sink->write(level, options_.clock->wall(), engine_, text);
}

void write_iteration_details(const StatLoggerOptions& options,
                             const StepRecord& step) {
  if (step.scheduler == nullptr ||
      !step.scheduler->iteration_details.has_value())
    return;
  if (options.log_sink->minimum_level() > LogLevel::kInfo) return;
  const IterationDetails& details = *step.scheduler->iteration_details;
  std::string encoder;
  if (details.num_encoder_inputs != 0) {
    encoder = fmt::format(", encoder inputs: {}, encoder output embeddings: {}",
                          details.num_encoder_inputs,
                          details.num_encoder_output_tokens);
  }
  options.log_sink->write(
      LogLevel::kInfo, options.clock->wall(), step.engine_index,
      fmt::format(
          "Engine {:03d}: Iteration({}): {} context requests, {} context "
          "tokens, {} generation requests, {} "
          "generation tokens, iteration elapsed time: {:.2f} ms{}, GPU KV "
          "cache usage: {:.1f}%{}",
          step.engine_index, details.iteration_index, details.num_ctx_requests,
          details.num_ctx_tokens, details.num_generation_requests,
          details.num_generation_tokens, unsigned_nan(details.elapsed_ms),
          details.is_dummy ? " (dummy)" : "",
          percent(step.scheduler->kv_cache_usage), encoder));
}

}  // namespace vllm_metrics::inline v0
