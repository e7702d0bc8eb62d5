#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

namespace vllm_metrics::inline v0 {

// The life of one sampled KV cache block, told when it is evicted. Seconds.
// Definition: vLLM KVCacheEvictionEvent. vLLM v1/metrics/stats.py.
struct KvCacheEvictionEvent {
  double lifetime_seconds = 0.0;  // allocation to eviction
  // Last access to eviction; from the allocation if never accessed.
  double idle_seconds = 0.0;
  // Between the last accesses, oldest first. In place, so that a list of
  // events allocates nothing for each.
  std::array<double, 3> reuse_gaps = {};
  std::size_t num_reuse_gaps = 0;  // of them, set

  std::span<const double> reuse_gaps_seconds() const noexcept {
    return {reuse_gaps.data(), std::min(num_reuse_gaps, reuse_gaps.size())};
  }
};

}  // namespace vllm_metrics::inline v0
