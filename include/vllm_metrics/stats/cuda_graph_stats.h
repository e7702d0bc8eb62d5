#pragma once

#include <cstdint>
#include <string_view>

namespace vllm_metrics::inline v0 {

// How one step was padded and run. Equal steps are counted together in the
// CUDA graph table of the log.
// Definition: vLLM CUDAGraphStat. vLLM compilation/cuda_graph.py.
struct CudaGraphStat {
  std::int64_t num_unpadded_tokens = 0;
  std::int64_t num_padded_tokens = 0;
  std::int64_t num_paddings = 0;
  // "NONE", "PIECEWISE", "FULL". Points to the caller's text, as all a step
  // has.
  std::string_view runtime_mode = {};
};

}  // namespace vllm_metrics::inline v0
