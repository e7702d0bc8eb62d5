#include "src/tools/replay/trace_reader.h"

#include <cerrno>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>

#include "src/tools/replay/event_fields.h"
#include "vllm_metrics/registry/labels.h"

namespace vllm_metrics::replay {
namespace {

// What nlohmann::json says behind `mark`: before it stand the error's number
// and, in a parse error, the place, which is given here in another form.
std::string_view complaint(const Json::exception& error,
                           std::string_view mark) {
  const std::string_view text = error.what();
  const std::size_t at = text.find(mark);
  return at == std::string_view::npos ? text : text.substr(at + mark.size());
}

}  // namespace

absl::StatusOr<TraceReader> TraceReader::open(const std::string& path) {
  if (path == "-") return TraceReader("standard input", nullptr, std::cin);
  auto file = std::make_unique<std::ifstream>(path, std::ios::binary);
  if (!*file) {
    return absl::NotFoundError(path + ": " + std::strerror(errno));
  }
  std::istream& input = *file;
  return TraceReader(path, std::move(file), input);
}

absl::Status TraceReader::error_here(std::string_view message) const {
  return error_at("", message);
}

absl::Status TraceReader::error_at(std::string_view column,
                                   std::string_view message) const {
  std::string text = path_ + ":" + std::to_string(line_number_);
  text.append(column).append(": ").append(message);
  return absl::InvalidArgumentError(valid_utf8(text));
}

// The next line that has something on it; false at the end of the file.
bool TraceReader::next_line() {
  while (std::getline(*input_, line_)) {
    ++line_number_;
    if (line_.find_first_not_of(" \t\r") != std::string::npos) return true;
  }
  return false;
}

absl::StatusOr<bool> TraceReader::next(TraceEvent& out) {
  if (!next_line()) {
    if (input_->bad()) return absl::NotFoundError(path_ + ": cannot be read");
    if (!has_config_) {
      return absl::InvalidArgumentError(
          path_ +
          ": is empty; a trace begins with a line "
          "{\"op\":\"config\",\"format\":1,...}");
    }
    return false;
  }
  if (const absl::Status status = read_line(out); !status.ok()) return status;

  const bool is_config = std::holds_alternative<TraceConfig>(out.action);
  if (is_config && has_config_) {
    return error_here("op: \"config\" is allowed on the first line only");
  }
#ifdef VLLM_METRICS_PLANTED_FAULT
  if (false) {
#else
  if (!is_config && !has_config_) {
#endif
    return error_here("op: the first line of a trace has to be \"config\"");
  }
  has_config_ = true;
  return true;
}

absl::Status TraceReader::read_line(TraceEvent& out) {
  Json line;
  try {
    line = Json::parse(line_);
  } catch (const Json::parse_error& error) {
    return error_at(":" + std::to_string(error.byte),
                    "not JSON: " + std::string(complaint(error, ": ")));
  } catch (const Json::exception& error) {
    return error_here("not JSON: " + std::string(complaint(error, "] ")));
  }
  LineReport report;
  read_event(std::move(line), report, out);
  for (const std::string& field : report.unread) {
    if (named_.insert(field).second) {
      std::cerr << path_ << ":" << line_number_ << ": warning: " << field
                << " is not a field of trace format 1, and not read\n";
    }
  }
  if (!report.error.empty()) return error_here(report.error);
  return absl::OkStatus();
}

}  // namespace vllm_metrics::replay
