// How do the text records get into the log of my program?
//
// Through a LogSink, whose one function hands a record to your logging library.
// Two are here: syslog, and spdlog where it is installed.

#include <syslog.h>

#include <iostream>
#include <memory>
#include <string_view>
#include <utility>

#include "vllm_metrics/loggers/stat_logger_manager.h"

#ifdef EXAMPLE_HAS_SPDLOG
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <chrono>
#endif

namespace {

using namespace vllm_metrics;

// [syslog]
class SyslogSink : public LogSink {
 public:
  void write(LogLevel level, double /*time: syslog has its own*/,
             int /*engine: the text names it*/,
             std::string_view text) override {
    syslog(priority_of(level), "%.*s", static_cast<int>(text.size()),
           text.data());
  }

 private:
  static int priority_of(LogLevel level) {
    switch (level) {
      case LogLevel::kDebug:
        return LOG_DEBUG;
      case LogLevel::kInfo:
        return LOG_INFO;
      case LogLevel::kWarning:
        return LOG_WARNING;
      case LogLevel::kError:
        return LOG_ERR;
    }
    return LOG_ERR;
  }
};
// [/syslog]

#ifdef EXAMPLE_HAS_SPDLOG
// [spdlog]
class SpdlogSink : public LogSink {
 public:
  explicit SpdlogSink(std::shared_ptr<spdlog::logger> logger)
      : logger_(std::move(logger)) {}

  // Follows the logger's own level, also when that changes at run time.
  LogLevel minimum_level() const override {
    for (const auto level :
         {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning}) {
      if (logger_->should_log(level_of(level))) return level;
    }
    return LogLevel::kError;
  }

  // With the loggers' time, which is not the machine's in a replay.
  void write(LogLevel level, double time, int /*engine*/,
             std::string_view text) override {
    const std::chrono::duration<double> since_1970(time);
    logger_->log(spdlog::log_clock::time_point(
                     std::chrono::duration_cast<spdlog::log_clock::duration>(
                         since_1970)),
                 spdlog::source_loc{}, level_of(level),
                 spdlog::string_view_t(text.data(), text.size()));
  }

 private:
  static spdlog::level::level_enum level_of(LogLevel level) {
    switch (level) {
      case LogLevel::kDebug:
        return spdlog::level::debug;
      case LogLevel::kInfo:
        return spdlog::level::info;
      case LogLevel::kWarning:
        return spdlog::level::warn;
      case LogLevel::kError:
        return spdlog::level::err;
    }
    return spdlog::level::err;
  }

  std::shared_ptr<spdlog::logger> logger_;
};
// [/spdlog]
#endif

// Records one step and logs it through `sink`.
absl::Status run_with(std::shared_ptr<LogSink> sink) {
  // [options]
  StatLoggerOptions options;
  options.model_name = "tiny-1b";
  options.max_model_len = 4096;
  options.log_sink = std::move(sink);
  // [/options]
  const auto manager = StatLoggerManager::create(std::move(options));
  if (!manager.ok()) return manager.status();
  const SchedulerStats scheduler{.num_running_reqs = 3};
  const IterationStats iteration{.num_generation_tokens = 3};
  (*manager)->record(&scheduler, &iteration);
  (*manager)->log();
  return absl::OkStatus();
}

}  // namespace

int main() {
  // LOG_PERROR: to standard error as well, to see it without a syslog daemon.
  openlog("tiny-engine", LOG_PERROR, LOG_USER);
  absl::Status status = run_with(std::make_shared<SyslogSink>());
  closelog();
#ifdef EXAMPLE_HAS_SPDLOG
  status.Update(run_with(
      std::make_shared<SpdlogSink>(spdlog::stderr_logger_mt("tiny-engine"))));
#endif
  if (!status.ok()) std::cerr << status << '\n';
  return status.ok() ? 0 : 1;
}
