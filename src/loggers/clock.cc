#include "vllm_metrics/loggers/clock.h"

#include <chrono>

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
};

}  // namespace

Clock::~Clock() = default;

std::shared_ptr<const Clock> Clock::system() {
  return std::make_shared<SystemClock>();
}

}  // namespace vllm_metrics::inline v0
