#pragma once

#include <string_view>

#include "vllm_metrics/export.h"

// The one place that states the version; the build reads it from here.
#define VLLM_METRICS_VERSION_MAJOR 0
#define VLLM_METRICS_VERSION_MINOR 1
#define VLLM_METRICS_VERSION_PATCH 0

// The same as a string literal: "major.minor.patch".
#define VLLM_METRICS_VERSION_QUOTE_(a, b, c) #a "." #b "." #c
#define VLLM_METRICS_VERSION_JOIN_(a, b, c) VLLM_METRICS_VERSION_QUOTE_(a, b, c)
#define VLLM_METRICS_VERSION                             \
  VLLM_METRICS_VERSION_JOIN_(VLLM_METRICS_VERSION_MAJOR, \
                             VLLM_METRICS_VERSION_MINOR, \
                             VLLM_METRICS_VERSION_PATCH)

namespace vllm_metrics::inline v0 {

// The version of the library that is linked in. The macro is the version of
// the headers; with a shared library the two can differ. Static storage; any
// thread.
VLLM_METRICS_EXPORT std::string_view version() noexcept;

}  // namespace vllm_metrics::inline v0
