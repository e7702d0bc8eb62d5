#pragma once

#include <chrono>
#include <csignal>

#include "src/tools/sim/virtual_time.h"

namespace vllm_metrics::sim {

// Ties virtual to real time, and takes Ctrl-C: as long as it lives, SIGINT and
// SIGTERM end no thread that is started meanwhile, but are noticed here.
class RealTime {
 public:
  // `speed`: virtual seconds in a real one; infinity never waits.
  explicit RealTime(double speed);
  ~RealTime();
  RealTime(const RealTime&) = delete;
  RealTime& operator=(const RealTime&) = delete;

  // Real seconds since construction.
  double elapsed_seconds() const;

  // The virtual time by now; kNever when it never waits.
  Ticks virtual_now() const;

  // Real seconds until virtual `then`; 0 or less when that has passed.
  double seconds_until(Ticks then) const;

  // Sleeps for so many real seconds or until a signal; 0 only looks for one.
  void sleep(double seconds);
  bool interrupted() const { return interrupted_; }

 private:
  using RealClock = std::chrono::steady_clock;

  double speed_;
  RealClock::time_point start_ = RealClock::now();
  bool interrupted_ = false;
  sigset_t signals_;
  sigset_t mask_before_;
};

}  // namespace vllm_metrics::sim
