#pragma once

#include <atomic>

namespace vllm_metrics::inline v0 {

// A value that can go up and down, e.g. requests running now.
// For a value that only rises, use Counter: rates need one.
//
// Unit: base units, named at the end of the family's name (`_seconds`).
// Thread-safety: any member, from any thread, without a lock. set() is
// wait-free; inc() and dec() retry only while another thread succeeds.
// Errors: none. NaN and infinities are legal values and are exposed as
// `NaN`, `+Inf`, `-Inf`.
// Definition: Prometheus "Gauge" (metric types).
class Gauge {
 public:
  constexpr Gauge() noexcept = default;
  Gauge(const Gauge&) = delete;
  Gauge& operator=(const Gauge&) = delete;

  void set(double v) noexcept { value_.store(v, std::memory_order_relaxed); }
  void inc(double v = 1.0) noexcept {
    value_.fetch_add(v, std::memory_order_relaxed);
  }
  void dec(double v = 1.0) noexcept {
    value_.fetch_sub(v, std::memory_order_relaxed);
  }

  double value() const noexcept {
    return value_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<double> value_{0.0};
};

static_assert(std::atomic<double>::is_always_lock_free);

}  // namespace vllm_metrics::inline v0
