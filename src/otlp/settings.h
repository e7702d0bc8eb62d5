#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "vllm_metrics/otlp/options.h"

namespace vllm_metrics::inline v0::otlp {

enum class Signal { kMetrics, kTraces };

using Pairs = std::vector<std::pair<std::string, std::string>>;

// Options and environment, made one.
struct Settings {
  std::string url = {};
  Pairs headers = {};
  Compression compression = Compression::kNone;
  double timeout = 10.0;
  std::string ca_certificate = {};
  std::string client_key = {};
  std::string client_certificate = {};
  std::string file = {};  // empty: over HTTP
  std::uint64_t file_max_bytes = 0;
  Pairs resource = {};
  double export_interval = 60.0;
  double export_timeout = 30.0;
  Temporality temporality = Temporality::kCumulative;
  bool explicit_histograms = false;  // even where there are native buckets
  std::optional<GenAiMetrics> gen_ai = {};  // spans have it in any case
  bool disabled = false;
  // Of spans. Those with a context: by its flag, unless it is not looked at.
  bool parent_based = true;
  double root_ratio = 1.0;
  double span_delay = 5.0;
  double span_export_timeout = 30.0;
  std::size_t span_queue = 2048;
  std::size_t span_batch = 512;
};

// InvalidArgument names the option or the variable, its value (a header's is
// secret) and what is allowed. Variables that are a choice, a number or a list
// of attributes are ignored instead, with a warning in the log.
absl::StatusOr<Settings> resolve(const Options& options, Signal signal);

}  // namespace vllm_metrics::inline v0::otlp
