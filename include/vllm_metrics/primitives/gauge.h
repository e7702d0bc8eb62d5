#pragma once

#include <atomic>
#include <chrono>
#include <limits>

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
  // One that also keeps the time of its last write: of several processes' it is
  // then known whose is the newest. All bytes zero it is 0 and never set.
  struct Timed {};
  explicit constexpr Gauge(Timed) noexcept : time_(0.0) {}
  Gauge(const Gauge&) = delete;
  Gauge& operator=(const Gauge&) = delete;

  void set(double v) noexcept {
    value_.store(v, std::memory_order_relaxed);
    stamp();
  }
  void inc(double v = 1.0) noexcept {
    value_.fetch_add(v, std::memory_order_relaxed);
    stamp();
  }
  void dec(double v = 1.0) noexcept {
    value_.fetch_sub(v, std::memory_order_relaxed);
    stamp();
  }

  double value() const noexcept {
    return value_.load(std::memory_order_relaxed);
  }

 private:
  void stamp() noexcept {
    if (time_.load(std::memory_order_relaxed) >= 0.0) [[unlikely]] {
      const auto now = std::chrono::system_clock::now().time_since_epoch();
      time_.store(std::chrono::duration<double>(now).count(),
                  std::memory_order_relaxed);
    }
  }

  std::atomic<double> value_{0.0};
  // Of the last write, seconds since 1970; 0: none yet; NaN: not kept.
  std::atomic<double> time_{std::numeric_limits<double>::quiet_NaN()};
};

static_assert(std::atomic<double>::is_always_lock_free);

}  // namespace vllm_metrics::inline v0
