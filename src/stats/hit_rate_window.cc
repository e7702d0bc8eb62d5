#include "vllm_metrics/stats/hit_rate_window.h"

namespace vllm_metrics::inline v0 {
namespace {

// What a step's count can be, so that the sum of all in a window is exact.
constexpr std::int64_t kMostOfAStep = std::int64_t{1} << 42;
static_assert((HitRateWindow::kMostRequests + 1) * kMostOfAStep > 0);

std::int64_t bounded(std::int64_t n) {
  return std::clamp<std::int64_t>(n, 0, kMostOfAStep);
}

}  // namespace

void HitRateWindow::observe(const CacheStats& stats) {
  if (stats.reset) {
    size_ = 0;
    requests_ = queries_ = hits_ = 0;
  }
  if (stats.requests <= 0) return;
  push({bounded(stats.requests), bounded(stats.queries), bounded(stats.hits)});
  while (size_ > 1 && requests_ > max_requests_) pop();
}

void HitRateWindow::push(const Step& step) {
  // A step has at least one request, so one more than the limit always fits.
  if (ring_.empty()) ring_.resize(static_cast<std::size_t>(max_requests_) + 1);
  ring_[(head_ + size_) % ring_.size()] = step;
  ++size_;
  requests_ += step.requests;
  queries_ += step.queries;
  hits_ += step.hits;
}

void HitRateWindow::pop() {
  const Step& oldest = ring_[head_];
  requests_ -= oldest.requests;
  queries_ -= oldest.queries;
  hits_ -= oldest.hits;
  head_ = (head_ + 1) % ring_.size();
  --size_;
}

}  // namespace vllm_metrics::inline v0
