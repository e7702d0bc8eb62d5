#pragma once

namespace vllm_metrics::inline v0 {

struct PerfBreakdown;

// Estimated work of one step on one GPU, the source of model FLOPs utilisation.
// Definition: vLLM PerfStats. vLLM v1/metrics/perf.py.
struct PerfStats {
  double num_flops_per_gpu = 0.0;
  double num_read_bytes_per_gpu = 0.0;
  double num_write_bytes_per_gpu = 0.0;

  // For the debug record; null: not wanted. It is the engine's and has to live
  // until record() returns.
  const PerfBreakdown* breakdown = nullptr;

  bool empty() const noexcept {
    return num_flops_per_gpu == 0.0 && num_read_bytes_per_gpu == 0.0 &&
           num_write_bytes_per_gpu == 0.0;
  }
};

}  // namespace vllm_metrics::inline v0
