#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "vllm_metrics/http/exposer_options.h"

namespace vllm_metrics::inline v0::http {

// The text, from wherever it comes. Errors name the option `name` and the file
// with the system's reason; they never show the text.
absl::StatusOr<std::string> read(const TextOrFile& source,
                                 const std::string& name);

}  // namespace vllm_metrics::inline v0::http
