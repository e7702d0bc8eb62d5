#include "src/loggers/unexpected_engines.h"

#include <fmt/format.h>

namespace vllm_metrics::inline v0 {

void UnexpectedEngines::report(int engine_index) {
  {
    const MutexLock lock(mutex_);
    if (reported_.size() >= kMostReported ||
        !reported_.insert(engine_index).second)
      return;
  }
  if (sink_->minimum_level() > LogLevel::kWarning) return;
  sink_->write(LogLevel::kWarning, clock_->wall(), LogSink::kNoEngine,
               fmt::format("Unexpected engine_idx: {}", engine_index));
}

}  // namespace vllm_metrics::inline v0
