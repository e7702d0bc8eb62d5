#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <limits>

namespace vllm_metrics::inline v0 {

// A value that only goes up, e.g. tokens generated since the process started.
// For a value that can fall, use Gauge.
//
// Unit: a count, or base units when the family's name says so (`_seconds`,
// `_bytes`). On the wire the sample's name ends in `_total`.
// Thread-safety: any member, from any thread, without a lock. Wait-free.
// Errors: none returned. A negative argument is the caller's bug: C++ turns it
// into a huge unsigned one, which adds nothing and is counted in rejected().
// Past 2^64 - 1 the value wraps; PromQL reads that as a reset.
// Definition: Prometheus "Counter" (metric types), and `inc`/`inc(v)` of
// "Writing client libraries".
class Counter {
 public:
  // The largest step that is believed; anything above is a negative number
  // that lost its sign.
  static constexpr std::uint64_t kMaxIncrement =
      std::numeric_limits<std::int64_t>::max();

  constexpr Counter() noexcept = default;
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;

  // Adds `n`. Relaxed: a scrape sees the total, not its order against other
  // metrics; for samples that must agree within a step, see `Bank`.
  void inc(std::uint64_t n = 1) noexcept {
    if (n <= kMaxIncrement) [[likely]] {
      value_.fetch_add(n, std::memory_order_relaxed);
    } else {
      rejected_.fetch_add(1, std::memory_order_relaxed);
    }
  }

  // Whole numbers only: 0.5 would silently add 0.
  template <std::floating_point Real>
  void inc(Real n) = delete;

  std::uint64_t value() const noexcept {
    return value_.load(std::memory_order_relaxed);
  }

  // Increments that were refused since construction.
  std::uint64_t rejected() const noexcept {
    return rejected_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> value_{0};
  std::atomic<std::uint64_t> rejected_{0};
};

}  // namespace vllm_metrics::inline v0
