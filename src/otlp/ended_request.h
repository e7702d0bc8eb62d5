#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "vllm_metrics/stats/finished_request_stats.h"

namespace vllm_metrics::inline v0::otlp {

// What a span is made of.
struct EndedRequest {
  FinishedRequestStats stats = {};
  double end = 0.0;  // wall, seconds since 1970
};

// From one engine's thread to the exporter's: a ring of a power of two places.
//
// Thread-safety: push() by one thread, pop() by another. Wait-free.
class EndedRequestRing {
 public:
  explicit EndedRequestRing(std::size_t capacity)
      : places_(std::bit_ceil(capacity)) {}

  // False: full.
  bool push(const EndedRequest& request) noexcept {
    const std::uint64_t at = pushed_.load(std::memory_order_relaxed);
    if (at - popped_.load(std::memory_order_acquire) >= places_.size())
      return false;
    places_[at & (places_.size() - 1)] = request;
    pushed_.store(at + 1, std::memory_order_release);
    return true;
  }

  bool empty() const noexcept {
    return popped_.load(std::memory_order_relaxed) ==
           pushed_.load(std::memory_order_acquire);
  }

  // False: empty.
  bool pop(EndedRequest& out) noexcept {
    const std::uint64_t at = popped_.load(std::memory_order_relaxed);
    if (at == pushed_.load(std::memory_order_acquire)) return false;
    out = places_[at & (places_.size() - 1)];
    popped_.store(at + 1, std::memory_order_release);
    return true;
  }

 private:
  std::vector<EndedRequest> places_;
  alignas(64) std::atomic<std::uint64_t> pushed_{0};
  alignas(64) std::atomic<std::uint64_t> popped_{0};
};

}  // namespace vllm_metrics::inline v0::otlp
