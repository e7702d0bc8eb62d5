#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "vllm_metrics/stats/finished_request_stats.h"

namespace vllm_metrics::inline v0::otlp {

// What a span is made of.
struct EndedRequest {
  FinishedRequestStats stats = {};
  double end = 0.0;  // wall, seconds since 1970
};

// Of the request and the phases it had.
inline std::uint64_t num_spans(const FinishedRequestStats& stats) noexcept {
  const auto one = [](const std::optional<double>& phase) {
    return std::uint64_t{phase.has_value()};
  };
  if (!stats.first_token_latency) return 1 + one(stats.queued_time);
  return 1 + one(stats.decode_time) +
         (stats.prefill_time ? 1 + one(stats.queued_time) : 0);
}

// From one engine's thread to the exporter's: a ring of a power of two places.
//
// Thread-safety: push() by one thread, pop() by another. Wait-free. Of a push()
// and what its thread reads next, and of what another wrote and its pop(), at
// least one sees the other (sequentially consistent).
class EndedRequestRing {
 public:
  explicit EndedRequestRing(std::size_t capacity)
      : places_(std::bit_ceil(capacity)) {}

  // Makes one of a request, in place. False: full.
  bool push(const FinishedRequestStats& stats, const TraceContext& trace,
            double end) noexcept {
    const std::uint64_t at = pushed_.load(std::memory_order_relaxed);
    if (at - popped_.load(std::memory_order_acquire) >= places_.size())
      return false;
    EndedRequest& place = places_[at & (places_.size() - 1)];
    place.stats = stats;
    place.stats.trace = trace;
    place.end = end;
    pushed_.store(at + 1, std::memory_order_seq_cst);
    return true;
  }

  // By any thread; whoever pops finds as many at least.
  std::size_t size() const noexcept {
    const std::uint64_t popped = popped_.load(std::memory_order_acquire);
    return pushed_.load(std::memory_order_acquire) - popped;
  }
  std::size_t capacity() const noexcept { return places_.size(); }

  // False: empty.
  bool pop(EndedRequest& out) noexcept {
    const std::uint64_t at = popped_.load(std::memory_order_relaxed);
    if (at == pushed_.load(std::memory_order_seq_cst)) return false;
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
