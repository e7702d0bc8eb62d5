#pragma once

#include <cstdint>

#include "vllm_metrics/stats/saturating_add.h"

namespace vllm_metrics::inline v0 {

// Lookups in a cache during one step. Counts are deltas of the step.
// Definition: vLLM BaseCacheStats. vLLM v1/metrics/stats.py.
struct CacheStats {
  bool reset = false;         // the cache was emptied in this step
  std::int64_t requests = 0;  // requests that looked something up
  // Tokens (prefix caches) or items (multi-modal) asked for.
  std::int64_t queries = 0;
  std::int64_t hits = 0;  // of these, found
};

// The multi-modal input cache. Unit: items.
using MultiModalCacheStats = CacheStats;

// A prefix cache. Unit: tokens. Lookups of requests that had been preempted
// stand apart and feed no metric: they would count one prompt twice.
struct PrefixCacheStats : CacheStats {
  std::int64_t preempted_requests = 0;
  std::int64_t preempted_queries = 0;
  std::int64_t preempted_hits = 0;

  // One request's lookup: `num_tokens` asked for, `num_hits` found.
  void record(std::int64_t num_tokens, std::int64_t num_hits,
              bool preempted) noexcept {
    ++(preempted ? preempted_requests : requests);
    saturating_add_to(preempted ? preempted_queries : queries, num_tokens);
    saturating_add_to(preempted ? preempted_hits : hits, num_hits);
  }
};

}  // namespace vllm_metrics::inline v0
