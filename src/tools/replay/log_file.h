#pragma once

#include <ostream>
#include <string_view>

#include "vllm_metrics/loggers/log_sink.h"

namespace vllm_metrics::replay {

// Text records as lines `LEVEL text`, DEBUG ones too. Inside the text a
// backslash is written `\\` and a newline `\n`.
class LogFile : public LogSink {
 public:
  // `out` outlives the sink.
  explicit LogFile(std::ostream& out) : out_(out) {}

  LogLevel minimum_level() const override { return LogLevel::kDebug; }

  void write(LogLevel level, double, int, std::string_view text) override {
    out_ << name_of(level) << ' ';
    for (const char c : text) {
      switch (c) {
        case '\\':
          out_ << "\\\\";
          break;
        case '\n':
          out_ << "\\n";
          break;
        default:
          out_ << c;
      }
    }
    out_ << '\n';
  }

 private:
  std::ostream& out_;
};

}  // namespace vllm_metrics::replay
