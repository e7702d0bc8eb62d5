#pragma once

#include <chrono>
#include <csignal>

#include "src/tools/sim/virtual_time.h"

namespace vllm_metrics::sim {

// Whether the end of a child process ends a sleep.
enum class ChildEnd { kIgnored, kWakes };

// Ties virtual to real time, and takes Ctrl-C: as long as it lives, SIGINT and
// SIGTERM end no thread that is started meanwhile, but are noticed here.
class RealTime {
 public:
  // `speed`: virtual seconds in a real one; infinity never waits, at 0 time
  // stands still.
  explicit RealTime(double speed, ChildEnd child_end = ChildEnd::kIgnored);
  ~RealTime();
  RealTime(const RealTime&) = delete;
  RealTime& operator=(const RealTime&) = delete;

  // Real seconds since construction.
  double elapsed_seconds() const;

  // The virtual time by now; kNever when it never waits.
  Ticks virtual_now() const;

  // Real seconds until virtual `then`; 0 or less when that has passed.
  double seconds_until(Ticks then) const;

  // From now on, which is virtual `now`, time goes at this speed.
  void set_speed(double speed, Ticks now);
  double speed() const { return speed_; }

  // Sleeps for so many real seconds, or less: until a signal, or the end of a
  // child process when that wakes; 0 only looks for a signal.
  void sleep(double seconds);
  // Sleeps for so many real seconds, whatever wakes it, or until interrupted.
  void linger(double seconds);
  bool interrupted() const { return interrupted_; }

 private:
  using RealClock = std::chrono::steady_clock;

  double speed_;
  // When that speed began: real seconds, and virtual time.
  double base_seconds_ = 0.0;
  Ticks base_ = 0;
  RealClock::time_point start_ = RealClock::now();
  bool interrupted_ = false;
  sigset_t signals_;
  sigset_t mask_before_;
};

}  // namespace vllm_metrics::sim
