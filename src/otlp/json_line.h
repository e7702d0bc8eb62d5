#pragma once

#include <string>
#include <string_view>

#include "src/otlp/settings.h"

namespace vllm_metrics::inline v0::otlp {

// What the line of a request of this signal begins with.
std::string_view json_line_head(Signal signal);

// A request, as metrics_message.h or spans_message.h made it, in the JSON
// encoding of OTLP and without a newline: names in camel case, integers of 64
// bits as text, ids in hex, enumerations as numbers.
// Definition: OpenTelemetry Protocol 1.x "JSON Protobuf Encoding"; ProtoJSON.
std::string json_line(Signal signal, std::string_view request);

}  // namespace vllm_metrics::inline v0::otlp
