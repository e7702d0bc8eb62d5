#include "src/loggers/contained_logger.h"

#include <fmt/format.h>

namespace vllm_metrics::inline v0 {

void LoggerErrors::report(std::string_view what) noexcept {
  count();
  if (reported_.exchange(true, std::memory_order_relaxed)) return;
  try {
    sink_->write(
        LogLevel::kError, clock_->wall(), LogSink::kNoEngine,
        fmt::format(
            "Stat logger {} threw and is called on; this is reported once: {}",
            name_, what));
  } catch (...) {
    // The sink itself is broken; the count on the page is what is left.
  }
}

}  // namespace vllm_metrics::inline v0
