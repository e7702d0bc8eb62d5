#include "src/loggers/log_interval.h"

#include "vllm_metrics/stats/saturating_add.h"

namespace vllm_metrics::inline v0 {

LogInterval::LogInterval(const StatLoggerOptions& options) {
  if (options.kv_connector == nullptr) return;
  connector = options.kv_connector->make_log();
  connector_name_ = options.kv_connector->connector();
}

void LogInterval::observe(const StepRecord& step) {
  if (step.iteration != nullptr) {
    saturating_add_to(computed_prompt_tokens,
                      step.iteration->prompt_token_stats.computed);
    saturating_add_to(generation_tokens, step.iteration->num_generation_tokens);
    saturating_add_to(preemptions, step.iteration->num_preempted_reqs);
    saturating_add_to(corrupted, step.iteration->num_corrupted_reqs);
  }
  if (step.scheduler != nullptr) observe(*step.scheduler);
}

void LogInterval::observe(const SchedulerStats& scheduler) {
  if (scheduler.spec_decoding_stats.has_value())
    spec_decoding.observe(*scheduler.spec_decoding_stats);
  if (scheduler.cudagraph_stats.has_value())
    cuda_graphs.observe(*scheduler.cudagraph_stats);
  if (scheduler.perf_stats.has_value()) perf.observe(*scheduler.perf_stats);
  const KvConnectorStats* transfer = scheduler.kv_connector_stats;
  if (connector != nullptr && transfer != nullptr &&
      transfer->connector() == connector_name_ && !transfer->empty()) {
    connector->observe(*transfer);
    connector_has_data = true;
  }
}

void LogInterval::reset() {
  computed_prompt_tokens = generation_tokens = preemptions = corrupted = 0;
  spec_decoding.reset();
  cuda_graphs.reset();
  perf.reset();
  connector_has_data = false;  // its log began anew when it was finished
}

}  // namespace vllm_metrics::inline v0
