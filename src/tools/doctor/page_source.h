#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace vllm_metrics::doctor {

// The bytes of the page at `url`, text format. At most 10 s and 256 MiB.
// Errors: Unavailable with the URL and the reason, e.g. `http://127.0.0.1:1/:
// Failed to connect ...` or `...: status 404`.
absl::StatusOr<std::string> fetch(const std::string& url);

// The bytes of a file; "-" is standard input.
// Errors: NotFound with the path and the system's reason.
absl::StatusOr<std::string> read_file(const std::string& path);

}  // namespace vllm_metrics::doctor
