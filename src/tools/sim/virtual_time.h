#pragma once

#include <atomic>
#include <cmath>
#include <cstdint>

#include "vllm_metrics/loggers/clock.h"

namespace vllm_metrics::sim {

// Virtual time is counted in ticks of 2^-20 s since the start of the run. A
// double holds seconds since 1970 exactly on that grid, and sums of such
// seconds too: end to end = front end + queue + prefill + decode then holds to
// the last bit, on the page as well.
using Ticks = std::int64_t;

inline constexpr Ticks kTicksPerSecond = Ticks{1} << 20;
inline constexpr Ticks kNever = INT64_MAX;

constexpr double to_seconds(Ticks ticks) {
  return static_cast<double>(ticks) / static_cast<double>(kTicksPerSecond);
}

// The nearest tick; halves away from zero.
inline Ticks to_ticks(double seconds) {
  return std::llround(seconds * static_cast<double>(kTicksPerSecond));
}

// The library's clock over virtual time.
//
// Thread-safety: one thread advances it, any thread reads it.
class VirtualClock final : public Clock {
 public:
  // `epoch`: the wall clock at virtual time 0, ticks since 1970.
  explicit VirtualClock(Ticks epoch) : epoch_(epoch) {}

  void advance_to(Ticks now) { now_.store(now, std::memory_order_release); }
  Ticks now() const { return now_.load(std::memory_order_acquire); }
  double wall_at(Ticks ticks) const { return to_seconds(epoch_ + ticks); }

  double wall() const noexcept override { return wall_at(now()); }
  double monotonic() const noexcept override { return to_seconds(now()); }

 private:
  Ticks epoch_;
  std::atomic<Ticks> now_{0};
};

}  // namespace vllm_metrics::sim
