#pragma once

#include <vector>

namespace vllm_metrics::inline v0 {

// The life of one sampled KV cache block, told when it is evicted. Seconds.
// Definition: vLLM KVCacheEvictionEvent. vLLM v1/metrics/stats.py.
struct KvCacheEvictionEvent {
  double lifetime_seconds = 0.0;  // allocation to eviction
  // Last access to eviction; from the allocation if never accessed.
  double idle_seconds = 0.0;
  // Between the last accesses, up to three.
  std::vector<double> reuse_gaps_seconds = {};
};

}  // namespace vllm_metrics::inline v0
