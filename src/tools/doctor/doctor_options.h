#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "src/tools/doctor/diagnosis.h"

namespace vllm_metrics::doctor {

extern const std::string_view kUsage;

struct DoctorOptions {
  std::string url = {};   // of the page; empty: `from` and `to`
  std::string dcgm = {};  // URL of the GPUs' exporter; empty: none
  std::string from = {};  // a saved page; empty: since the server's start
  std::string to = {};
  double interval = 15.0;              // seconds between two scrapes
  std::optional<double> elapsed = {};  // seconds between two saved pages
  Objectives objectives = {};
  bool json = false;
  bool watch = false;
  bool help = false;
  bool version = false;
};

// Errors: InvalidArgument that names the option, the value and what is allowed.
absl::StatusOr<DoctorOptions> parse_options(
    std::span<const char* const> arguments);

}  // namespace vllm_metrics::doctor
