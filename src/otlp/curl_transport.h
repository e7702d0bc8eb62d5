#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "src/otlp/settings.h"
#include "vllm_metrics/otlp/transport.h"

namespace vllm_metrics::inline v0::otlp {

// Over libcurl: keeps the connection, follows no redirect (headers can be
// secret), speaks http and https only. Proxies are those of the environment.
absl::StatusOr<std::shared_ptr<Transport>> make_curl_transport(
    const Settings& settings);

}  // namespace vllm_metrics::inline v0::otlp
