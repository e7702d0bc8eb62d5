#include "vllm_metrics/loggers/clock.h"

#include <chrono>
#include <ctime>

namespace vllm_metrics::inline v0 {
namespace {

template <class Source>
double seconds() noexcept {
  return std::chrono::duration<double>(Source::now().time_since_epoch())
      .count();
}

class SystemClock final : public Clock {
 public:
  double wall() const noexcept override {
    return seconds<std::chrono::system_clock>();
  }
  double monotonic() const noexcept override {
    return seconds<std::chrono::steady_clock>();
  }
#ifdef CLOCK_REALTIME_COARSE
  // A read of memory: a tenth of the other's time, and no system call even
  // where the other needs one (Xen, some hypervisors).
  double coarse_wall() const noexcept override {
    timespec now{};
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return static_cast<double>(now.tv_sec) +
           1e-9 * static_cast<double>(now.tv_nsec);
  }
#endif
};

}  // namespace

Clock::~Clock() = default;

std::shared_ptr<const Clock> Clock::system() {
  return std::make_shared<SystemClock>();
}

}  // namespace vllm_metrics::inline v0
