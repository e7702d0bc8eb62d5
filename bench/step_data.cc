#include "step_data.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace vllm_metrics::bench {
namespace {

// Log-normal, which is how latencies of a busy server look.
class Latencies {
 public:
  Latencies(double median_seconds, double sigma, unsigned seed)
      : engine_(seed), distribution_(std::log(median_seconds), sigma) {}
  double next() { return distribution_(engine_); }

 private:
  std::mt19937_64 engine_;
  std::lognormal_distribution<double> distribution_;
};

SchedulerStats make_scheduler(std::size_t step, std::size_t batch) {
  SchedulerStats stats;
  stats.num_running_reqs = static_cast<std::int64_t>(batch);
  stats.num_waiting_reqs = static_cast<std::int64_t>(step % 7);
  stats.num_skipped_waiting_reqs = static_cast<std::int64_t>(step % 3);
  stats.kv_cache_usage = static_cast<double>(step) / 256.0;
  stats.prefix_cache_stats.record(512, 384, false);
  stats.connector_prefix_cache_stats.emplace().record(128, 64, false);
  stats.perf_stats = {1.5e12, 2.5e9, 1.25e8};
  return stats;
}

FinishedRequestStats make_finished(Latencies& phases) {
  FinishedRequestStats stats;
  stats.finish_reason = FinishReason::kLength;
  stats.e2e_latency = phases.next();
  stats.queued_time = phases.next() / 64;
  stats.prefill_time = phases.next() / 16;
  stats.inference_time = phases.next();
  stats.decode_time = phases.next();
  stats.mean_time_per_output_token = phases.next() / 256;
  stats.num_prompt_tokens = static_cast<std::int64_t>(phases.next() * 100);
  stats.num_cached_tokens = stats.num_prompt_tokens / 2;
  stats.num_generation_tokens = static_cast<std::int64_t>(phases.next() * 40);
  stats.max_tokens_param = 1024;
  stats.num_preemptions = stats.num_prompt_tokens % 3;
  return stats;
}

// What the scheduler of an engine with every feature tells of one step.
void add_features(std::size_t step, std::size_t batch, Step& made) {
  SchedulerStats& stats = made.scheduler;
  auto& drafts = stats.spec_decoding_stats.emplace();
  drafts.num_spec_tokens = kSpecTokens;
  for (std::size_t i = 0; i < batch; ++i) {
    drafts.observe_draft(kSpecTokens,
                         static_cast<std::int64_t>((step + i) % 5));
  }
  stats.running_lora_adapters = {{"sql", 100}, {"summaries", 90}, {"de", 66}};
  stats.waiting_lora_adapters = {{"sql", 1}, {"summaries", 0}, {"de", 0}};
  made.transfers.record_transfer(1500.0 + static_cast<double>(step), 80,
                                 4 << 20, 64);
  stats.kv_connector_stats = &made.transfers;
  stats.kv_cache_eviction_events.push_back(
      {.lifetime_seconds = 30.0 + static_cast<double>(step),
       .idle_seconds = 2.5,
       .reuse_gaps = {0.5, 3.0, 11.0},
       .num_reuse_gaps = step % 4});
  stats.cudagraph_stats =
      CudaGraphStat{static_cast<std::int64_t>(batch), 256, 0, "FULL"};
}

FlatStep::Ended flat(const FinishedRequestStats& stats) {
  const auto real = [](std::int64_t n) { return static_cast<double>(n); };
  return {
      static_cast<std::size_t>(stats.finish_reason),
      {stats.e2e_latency, *stats.queued_time, *stats.prefill_time,
       *stats.inference_time, *stats.decode_time,
       stats.mean_time_per_output_token, real(stats.num_prompt_tokens),
       real(stats.num_prompt_tokens - stats.num_cached_tokens),
       real(stats.num_generation_tokens), real(*stats.max_tokens_param),
       real(stats.num_preemptions), real(stats.num_generation_tokens), 1.0}};
}

FlatStep flat(const Step& step) {
  const auto real = [](std::int64_t n) { return static_cast<double>(n); };
  const SchedulerStats& scheduler = step.scheduler;
  const IterationStats& iteration = step.iteration;
  const PromptTokenStats& prompt = iteration.prompt_token_stats;
  FlatStep made{
      {real(scheduler.num_running_reqs),
       real(scheduler.num_waiting_reqs + scheduler.num_skipped_waiting_reqs),
       real(scheduler.num_waiting_reqs),
       real(scheduler.num_skipped_waiting_reqs), scheduler.kv_cache_usage},
      {real(scheduler.prefix_cache_stats.queries),
       real(scheduler.prefix_cache_stats.hits),
       real(scheduler.connector_prefix_cache_stats->queries),
       real(scheduler.connector_prefix_cache_stats->hits),
       scheduler.perf_stats->num_flops_per_gpu,
       scheduler.perf_stats->num_read_bytes_per_gpu,
       scheduler.perf_stats->num_write_bytes_per_gpu,
       real(iteration.num_preempted_reqs), real(prompt.total),
       real(prompt.computed), real(prompt.local_cache_hit),
       real(prompt.external_kv_transfer), real(prompt.cached_tokens),
       real(iteration.num_generation_tokens)},
      real(prompt.computed + iteration.num_generation_tokens),
      iteration.time_to_first_tokens_iter,
      iteration.inter_token_latencies_iter,
      {}};
  for (const auto& finished : iteration.finished_requests)
    made.ended.push_back(flat(finished));
  return made;
}

}  // namespace

std::vector<Step> make_steps(const StepShape& shape) {
  Latencies between_tokens(0.025, 0.6, 3);
  Latencies to_first_token(0.15, 1.2, 1);
  Latencies phases(6.0, 1.4, 4);
  // Reserved, because a flat step points into its step.
  std::vector<Step> steps(
      std::min<std::size_t>(256, 65536 / (shape.batch + shape.first_outputs)));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Step& step = steps[i];
    step.scheduler = make_scheduler(i, shape.batch);
    IterationStats& iteration = step.iteration;
    iteration.num_generation_tokens =
        static_cast<std::int64_t>(shape.batch + shape.first_outputs);
    iteration.num_preempted_reqs = 1;
    iteration.prompt_token_stats.update({2048, 512, 256});
    double latency = between_tokens.next();
    for (std::size_t n = 0; n < shape.batch; ++n) {
      iteration.inter_token_latencies_iter.push_back(latency);
      if (!shape.equal) latency = between_tokens.next();
    }
    for (std::size_t n = 0; n < shape.first_outputs; ++n)
      iteration.time_to_first_tokens_iter.push_back(to_first_token.next());
    for (std::size_t n = 0; n < shape.ended; ++n) {
      const auto& finished =
          iteration.finished_requests.emplace_back(make_finished(phases));
      iteration.max_num_generation_tokens_iter.push_back(
          finished.num_generation_tokens);
      iteration.n_params_iter.push_back(1);
    }
    if (shape.every_feature) add_features(i, shape.batch, step);
    step.flat = flat(step);
  }
  return steps;
}

}  // namespace vllm_metrics::bench
