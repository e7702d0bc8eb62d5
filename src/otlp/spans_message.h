#pragma once

#include <random>
#include <span>
#include <string>
#include <string_view>

#include "src/otlp/ended_request.h"
#include "src/otlp/settings.h"

namespace vllm_metrics::inline v0::otlp {

struct SpanSource {
  EndedRequest request = {};
  int engine_index = 0;
};

// An ExportTraceServiceRequest with the spans of these requests. `random` makes
// their ids.
// Definition: opentelemetry/proto/trace/v1/trace.proto.
std::string encode(std::span<const SpanSource> requests,
                   std::string_view model_name, const Settings& settings,
                   std::mt19937_64& random);

}  // namespace vllm_metrics::inline v0::otlp
