#pragma once

#include "absl/status/statusor.h"
#include "vllm_metrics/loggers/options.h"

namespace vllm_metrics::inline v0 {

// `options` with every default filled in (engine indexes, clock, log sink), or
// InvalidArgument naming the field, its value and what is allowed.
absl::StatusOr<StatLoggerOptions> checked(StatLoggerOptions options);

// The release whose lifecycle rules hold: vllm_version's, or wire_version.
absl::StatusOr<WireVersion> running_release(const StatLoggerOptions& options);

// Whether hidden families are on the page: the rule of shows_hidden().
absl::StatusOr<bool> shows_hidden_families(const StatLoggerOptions& options);

// The defaults alone, for loggers that are made directly.
StatLoggerOptions with_defaults(StatLoggerOptions options);

}  // namespace vllm_metrics::inline v0
