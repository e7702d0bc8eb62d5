#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/tools/replay/trace_event.h"

namespace vllm_metrics::replay {

// Reads a trace line by line; the file may be larger than the memory.
//
// Errors: InvalidArgument `FILE:LINE: field: what is wrong and what is
// allowed`, or `FILE:LINE:COLUMN: not JSON: ...`. A field that the format does
// not know is no error: a newer writer may have put it there. It is named once
// on standard error.
class TraceReader {
 public:
  // "-" is standard input.
  static absl::StatusOr<TraceReader> open(const std::string& path);

  // Reads the next event into `out`. False at the end of the trace. The first
  // event is the configuration, and no other is.
  absl::StatusOr<bool> next(TraceEvent& out);

  // InvalidArgument with `message` and the place of the last event.
  absl::Status error_here(std::string_view message) const;

 private:
  TraceReader(std::string path, std::unique_ptr<std::ifstream> file,
              std::istream& input)
      : path_(std::move(path)), file_(std::move(file)), input_(&input) {}
  absl::Status error_at(std::string_view column,
                        std::string_view message) const;
  bool next_line();
  absl::Status read_line(TraceEvent& out);

  std::string path_;
  std::unique_ptr<std::ifstream> file_;  // null for standard input
  std::istream* input_;
  std::string line_;
  std::int64_t line_number_ = 0;
  bool has_config_ = false;
  std::set<std::string> named_;  // unknown fields that were named
};

}  // namespace vllm_metrics::replay
