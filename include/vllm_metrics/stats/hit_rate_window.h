#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "vllm_metrics/export.h"
#include "vllm_metrics/stats/cache_stats.h"

namespace vllm_metrics::inline v0 {

// The hit rate of a cache over its most recent requests (1000 unless told
// otherwise), which is what the log line shows.
//
// Thread-safety: none; the logger that owns it guards it.
// Memory: 24 bytes for each request of the limit, taken at the first lookup.
// Definition: vLLM CachingMetrics. vLLM v1/metrics/stats.py.
class VLLM_METRICS_EXPORT HitRateWindow {
 public:
  static constexpr std::int64_t kMostRequests = 1'000'000;

  // `max_recent_requests`: 1 to kMostRequests, otherwise the nearest of these.
  explicit HitRateWindow(std::int64_t max_recent_requests = 1000)
      : max_requests_(
            std::clamp<std::int64_t>(max_recent_requests, 1, kMostRequests)) {}

  // Adds a step. `reset` empties the window first; a step without requests
  // adds nothing. Old steps leave while over the limit, the newest never does.
  void observe(const CacheStats& stats);

  // Hits per query, 0..1; 0 when there were no queries.
  double hit_rate() const noexcept {
    return queries_ == 0
               ? 0.0
               : static_cast<double>(hits_) / static_cast<double>(queries_);
  }
  bool empty() const noexcept { return requests_ == 0; }

 private:
  struct Step {
    std::int64_t requests, queries, hits;
  };
  void push(const Step& step);
  void pop();

  std::int64_t max_requests_;
  std::vector<Step> ring_;  // steps in the window, oldest at head_
  std::size_t head_ = 0;
  std::size_t size_ = 0;
  std::int64_t requests_ = 0;
  std::int64_t queries_ = 0;
  std::int64_t hits_ = 0;
};

}  // namespace vllm_metrics::inline v0
