#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "src/tools/sim/parameters.h"
#include "src/tools/sim/virtual_time.h"
#include "vllm_metrics/catalogue/metric_spec.h"

namespace vllm_metrics::sim {

struct HostPort {
  std::string host;
  int port = 0;
};

// The page of a moment, to be written to a file.
struct PageAt {
  Ticks at = 0;
  std::string file;
};

// The command line. `vllm-metrics-sim --help` says what each is for.
struct SimOptions {
  static constexpr double kUnlimited = std::numeric_limits<double>::infinity();

  Parameters parameters;
  std::string scenario;  // a preset of them; empty: none
  std::string trace;     // file; empty: the workload of `parameters`
  std::uint64_t seed = 0;

  // --- The run -----------------------------------------------------------
  double speed = 1.0;             // virtual by real seconds; kUnlimited: max
  std::optional<double> seconds;  // virtual; unset: as the workload has it
  // Seconds since 1970 at virtual time 0; kUnlimited: of now; unset: as the
  // workload has it.
  std::optional<double> begin;
  double log_interval = 10.0;  // virtual seconds; 0: no log lines
  std::int64_t processes = 1;  // more: each runs all of this with its seed

  // --- What comes out ----------------------------------------------------
  std::string model_name = "sim-8b";
  WireVersion wire_version = {0, 30};
  bool aggregate_engine_logging = false;
  std::optional<HostPort> listen;  // unset: no endpoint
  double linger = 0.0;             // real seconds
  std::string otlp_endpoint;       // empty: nothing is pushed
  std::string page_file;           // these three: empty for none
  std::string requests_file;
  std::string itl_file;
  std::vector<PageAt> pages;  // by time

  bool help = false;
  bool version = false;
};

// `arguments` without the program's name. Errors: InvalidArgument that names
// the flag, the value and what is allowed.
absl::StatusOr<SimOptions> parse_options(
    std::span<const char* const> arguments);

// What --help prints.
std::string help_text();

// Nothing when `text` is not "host:port".
std::optional<HostPort> parse_host_port(std::string_view text);

}  // namespace vllm_metrics::sim
