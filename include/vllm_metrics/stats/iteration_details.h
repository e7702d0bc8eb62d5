#pragma once

#include <cstdint>

namespace vllm_metrics::inline v0 {

// One step in detail, for the opt-in text record that is written with it.
// Definition: vLLM IterationDetails. vLLM v1/metrics/stats.py.
struct IterationDetails {
  std::int64_t iteration_index = 0;
  std::int64_t num_ctx_requests = 0;  // requests with prompt tokens in the step
  std::int64_t num_ctx_tokens = 0;
  std::int64_t num_generation_requests = 0;
  std::int64_t num_generation_tokens = 0;
  double elapsed_ms = 0.0;  // milliseconds the step took
  std::int64_t num_encoder_inputs = 0;
  std::int64_t num_encoder_output_tokens = 0;
  bool is_dummy = false;  // a step without work, to keep the ranks in step
};

}  // namespace vllm_metrics::inline v0
