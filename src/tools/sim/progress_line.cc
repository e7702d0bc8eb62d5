#include "src/tools/sim/progress_line.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace vllm_metrics::sim {
namespace {

class SinkAbove final : public LogSink {
 public:
  explicit SinkAbove(ProgressLine& progress) : progress_(&progress) {}

  LogLevel minimum_level() const override { return sink_->minimum_level(); }

  void write(LogLevel level, double time, int engine,
             std::string_view text) override {
    progress_->clear();
    sink_->write(level, time, engine, text);
  }

 private:
  ProgressLine* progress_;
  std::shared_ptr<LogSink> sink_ = LogSink::standard_error();
};

void write_error(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

ProgressLine::ProgressLine() : ProgressLine(isatty(STDERR_FILENO) == 1) {}

ProgressLine ProgressLine::hidden() { return ProgressLine(false); }

void ProgressLine::show(std::string_view text) {
  if (!active_) return;
  clear();
  write_error(text);
  shown_ = true;
}

void ProgressLine::clear() {
  if (!std::exchange(shown_, false)) return;
  write_error("\r\x1b[K");  // to the line's beginning, erase to its end
}

std::shared_ptr<LogSink> sink_above(ProgressLine& progress) {
  return std::make_shared<SinkAbove>(progress);
}

}  // namespace vllm_metrics::sim
