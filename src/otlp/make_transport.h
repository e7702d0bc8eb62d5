#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "src/otlp/settings.h"
#include "vllm_metrics/otlp/transport.h"

namespace vllm_metrics::inline v0::otlp {

// The user's own, else into a file when there is one, else over HTTP.
absl::StatusOr<std::shared_ptr<Transport>> make_transport(
    const Options& options, const Settings& settings, Signal signal);

}  // namespace vllm_metrics::inline v0::otlp
