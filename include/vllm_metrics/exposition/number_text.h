#pragma once

#include <cstdint>

#include "vllm_metrics/export.h"

namespace vllm_metrics::inline v0 {

// Numbers as client_python writes them: shortest text that reads back as the
// same double, `.0` for whole ones, `1.5e+07` once a positive number has more
// than six digits before its point, `NaN`, `+Inf`, `-Inf`.
// Each writes at `out`, which has room for kMaxNumberText bytes, and returns
// the end. No locale, no allocation. Definition: client_python floatToGoString.
inline constexpr int kMaxNumberText = 32;

VLLM_METRICS_EXPORT char* write_number(char* out, double value) noexcept;

// An integer as the nearest double.
VLLM_METRICS_EXPORT char* write_number(char* out, std::uint64_t value) noexcept;

}  // namespace vllm_metrics::inline v0
