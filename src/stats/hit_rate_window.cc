#include "vllm_metrics/stats/hit_rate_window.h"

#include "vllm_metrics/stats/saturating_add.h"

namespace vllm_metrics::inline v0 {

void HitRateWindow::observe(const CacheStats& stats) {
  if (stats.reset) {
    size_ = 0;
    requests_ = queries_ = hits_ = 0;
  }
  if (stats.requests <= 0) return;
  push({stats.requests, stats.queries, stats.hits});
  while (size_ > 1 && requests_ > max_requests_) pop();
}

void HitRateWindow::push(const Step& step) {
  // A step has at least one request, so one more than the limit always fits.
  if (ring_.empty()) ring_.resize(static_cast<std::size_t>(max_requests_) + 1);
  ring_[(head_ + size_) % ring_.size()] = step;
  ++size_;
  saturating_add_to(requests_, step.requests);
  saturating_add_to(queries_, step.queries);
  saturating_add_to(hits_, step.hits);
}

void HitRateWindow::pop() {
  const Step& oldest = ring_[head_];
  saturating_add_to(requests_, -oldest.requests);
  saturating_add_to(queries_, -oldest.queries);
  saturating_add_to(hits_, -oldest.hits);
  head_ = (head_ + 1) % ring_.size();
  --size_;
}

}  // namespace vllm_metrics::inline v0
