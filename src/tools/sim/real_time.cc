#include "src/tools/sim/real_time.h"

#include <algorithm>
#include <cmath>
#include <ctime>

namespace vllm_metrics::sim {

RealTime::RealTime(double speed) : speed_(speed) {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGINT);
  sigaddset(&signals_, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals_, &mask_before_);
}

RealTime::~RealTime() { pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr); }

double RealTime::elapsed_seconds() const {
  return std::chrono::duration<double>(RealClock::now() - start_).count();
}

Ticks RealTime::virtual_now() const {
  return std::isinf(speed_) ? kNever : to_ticks(elapsed_seconds() * speed_);
}

double RealTime::seconds_until(Ticks then) const {
  return to_seconds(then) / speed_ - elapsed_seconds();
}

void RealTime::sleep(double seconds) {
  constexpr double kLongest = 1e9;  // 31 years; a time_t holds it
  const double bounded = std::clamp(seconds, 0.0, kLongest);
  timespec timeout{};
  timeout.tv_sec = static_cast<time_t>(bounded);
  timeout.tv_nsec = static_cast<long>((bounded - std::floor(bounded)) * 1e9);
  if (sigtimedwait(&signals_, nullptr, &timeout) > 0) interrupted_ = true;
}

}  // namespace vllm_metrics::sim
