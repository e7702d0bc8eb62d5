#include "vllm_metrics/loggers/log_sink.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <ctime>
#include <iterator>

namespace vllm_metrics::inline v0 {
namespace {

class StandardError final : public LogSink {
 public:
  explicit StandardError(LogLevel minimum_level)
      : minimum_level_(minimum_level) {}

  LogLevel minimum_level() const override { return minimum_level_; }

  // One write(2), so that lines of several threads do not mix.
  void write(LogLevel level, double time, int /*engine*/,
             std::string_view text) override {
    const auto seconds = static_cast<std::time_t>(std::floor(time));
    std::tm utc{};
    gmtime_r(&seconds, &utc);
    fmt::memory_buffer line;
    fmt::format_to(std::back_inserter(line),
                   "{} {:02}-{:02} {:02}:{:02}:{:02} [vllm_metrics] {}\n",
                   name_of(level), utc.tm_mon + 1, utc.tm_mday, utc.tm_hour,
                   utc.tm_min, utc.tm_sec, text);
    std::string_view left(line.data(), line.size());
    while (!left.empty()) {
      const auto written = ::write(STDERR_FILENO, left.data(), left.size());
      if (written <= 0) return;  // there is no better place to say so
      left.remove_prefix(static_cast<std::size_t>(written));
    }
  }

 private:
  LogLevel minimum_level_;
};

}  // namespace

LogSink::~LogSink() = default;

std::string_view name_of(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::kDebug:
      return "DEBUG";
    case LogLevel::kInfo:
      return "INFO";
    case LogLevel::kWarning:
      return "WARNING";
    case LogLevel::kError:
      return "ERROR";
  }
  return "UNKNOWN";
}

std::shared_ptr<LogSink> LogSink::standard_error(LogLevel minimum_level) {
  return std::make_shared<StandardError>(minimum_level);
}

}  // namespace vllm_metrics::inline v0
