#pragma once

#include <cstdint>
#include <optional>

#include "vllm_metrics/stats/finish_reason.h"
#include "vllm_metrics/stats/preemption_times.h"
#include "vllm_metrics/stats/request_id.h"
#include "vllm_metrics/stats/trace_context.h"

namespace vllm_metrics::inline v0 {

// One request that has ended, as the per-request histograms take it. A phase
// that never began or never ended is unset: it is not observed, but counted in
// `vllm_metrics_rejected_samples_total{reason="unset_timestamp"}`.
// Definition: vLLM FinishedRequestStats. vLLM v1/metrics/stats.py; where vLLM
// subtracts stamps of 0, the phase here is unset.
struct FinishedRequestStats {
  FinishReason finish_reason = FinishReason::kStop;
  double e2e_latency = 0.0;  // seconds, wall: arrival to the step of the end
  std::int64_t num_prompt_tokens = 0;
  std::int64_t num_generation_tokens = 0;
  // Absent or 0: not observed.
  std::optional<std::int64_t> max_tokens_param = {};
  // Seconds, engine clock.
  // QUEUED to the first SCHEDULED; to the end, if it ended waiting
  std::optional<double> queued_time = 0.0;
  // First SCHEDULED to the first output.
  std::optional<double> prefill_time = 0.0;
  // First SCHEDULED to the last output.
  std::optional<double> inference_time = 0.0;
  std::optional<double> decode_time = 0.0;  // first output to the last output
  // `decode_time` / (tokens - 1); 0 below two tokens.
  double mean_time_per_output_token = 0.0;
  bool is_corrupted = false;
  std::int64_t num_cached_tokens = 0;  // of the prompt, local and external
  std::int64_t num_preemptions = 0;
  // Seconds, wall: arrival to the first output. Unset: it had none.
  std::optional<double> first_token_latency = {};
  TraceContext trace = {};  // what the request came with
  RequestId request_id = {};
  PreemptionTimes preemption_times = {};  // engine, since the first SCHEDULED
};

}  // namespace vllm_metrics::inline v0
