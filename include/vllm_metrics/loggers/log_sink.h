#pragma once

#include <memory>
#include <string_view>

#include "vllm_metrics/export.h"

namespace vllm_metrics::inline v0 {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

VLLM_METRICS_EXPORT std::string_view name_of(
    LogLevel level) noexcept;  // "DEBUG", "INFO", ...

// Where the text records go. Derive from it to send them to your own logging
// library; examples/06_log_sinks.cc shows spdlog and syslog.
//
// Thread-safety: write() may be called from the threads of record() and log()
// at once.
// Errors: should not throw. An exception is contained by the manager and
// counted as an error of the logger that wrote.
class VLLM_METRICS_EXPORT LogSink {
 public:
  static constexpr int kNoEngine = -1;

  virtual ~LogSink();

  // Records below this level are not even formatted. Asked before each one, so
  // it may change at run time.
  virtual LogLevel minimum_level() const { return LogLevel::kInfo; }

  // `time`: wall clock of the loggers, seconds since 1970. `engine`: the engine
  // index the record is about, or kNoEngine. `text`: the record without level,
  // time or newline at the end; it may have newlines inside. Dies on return.
  virtual void write(LogLevel level, double time, int engine,
                     std::string_view text) = 0;

  // Lines like `INFO 11-29 17:40:02 [vllm_metrics] Engine 000: ...` (UTC), each
  // one write to standard error.
  static std::shared_ptr<LogSink> standard_error(
      LogLevel minimum_level = LogLevel::kInfo);
};

}  // namespace vllm_metrics::inline v0
