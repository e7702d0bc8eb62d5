#include "src/tools/sim/real_time.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>

namespace vllm_metrics::sim {

RealTime::RealTime(double speed, ChildEnd child_end) : speed_(speed) {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGINT);
  sigaddset(&signals_, SIGTERM);
  if (child_end == ChildEnd::kWakes) sigaddset(&signals_, SIGCHLD);
  pthread_sigmask(SIG_BLOCK, &signals_, &mask_before_);
}

RealTime::~RealTime() { pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr); }

double RealTime::elapsed_seconds() const {
  return std::chrono::duration<double>(RealClock::now() - start_).count();
}

Ticks RealTime::virtual_now() const {
  if (std::isinf(speed_)) return kNever;
  return base_ + to_ticks((elapsed_seconds() - base_seconds_) * speed_);
}

double RealTime::seconds_until(Ticks then) const {
  if (speed_ == 0.0) return std::numeric_limits<double>::infinity();
  return to_seconds(then - base_) / speed_ -
         (elapsed_seconds() - base_seconds_);
}

void RealTime::set_speed(double speed, Ticks now) {
  speed_ = speed;
  base_seconds_ = elapsed_seconds();
  base_ = now;
}

void RealTime::sleep(double seconds) {
  constexpr double kLongest = 1e9;  // 31 years; a time_t holds it
  const double bounded = std::clamp(seconds, 0.0, kLongest);
  timespec timeout{};
  timeout.tv_sec = static_cast<time_t>(bounded);
  timeout.tv_nsec = static_cast<long>((bounded - std::floor(bounded)) * 1e9);
  const int signal = sigtimedwait(&signals_, nullptr, &timeout);
  if (signal == SIGINT || signal == SIGTERM) interrupted_ = true;
}

void RealTime::linger(double seconds) {
  const double end = elapsed_seconds() + seconds;
  while (!interrupted_ && elapsed_seconds() < end)
    sleep(end - elapsed_seconds());
}

}  // namespace vllm_metrics::sim
