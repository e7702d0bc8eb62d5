#pragma once

#include <cstddef>
#include <unordered_set>

#include "src/registry/mutex.h"
#include "vllm_metrics/loggers/options.h"

namespace vllm_metrics::inline v0 {

// Warns of each undeclared engine index once. Thread-safe.
class UnexpectedEngines {
 public:
  // `options` with clock and sink set.
  explicit UnexpectedEngines(const StatLoggerOptions& options)
      : clock_(options.clock), sink_(options.log_sink) {}

  void report(int engine_index);

 private:
  // An engine that makes up indexes must not fill the log or the memory.
  static constexpr std::size_t kMostReported = 1024;

  std::shared_ptr<const Clock> clock_;
  std::shared_ptr<LogSink> sink_;
  Mutex mutex_;
  std::unordered_set<int> reported_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace vllm_metrics::inline v0
