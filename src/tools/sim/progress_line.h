#pragma once

#include <memory>
#include <string_view>

#include "vllm_metrics/loggers/log_sink.h"

namespace vllm_metrics::sim {

// One line at the bottom of a terminal that is written over and over. Does
// nothing when standard error is not a terminal.
//
// Thread-safety: none; log lines come from the thread that shows progress.
class ProgressLine {
 public:
  ProgressLine();
  static ProgressLine hidden();

  bool active() const { return active_; }
  void show(std::string_view text);
  void clear();

 private:
  explicit ProgressLine(bool active) : active_(active) {}

  bool active_;
  bool shown_ = false;
};

// The library's standard-error sink, which takes the progress line away first.
std::shared_ptr<LogSink> sink_above(ProgressLine& progress);

}  // namespace vllm_metrics::sim
