#pragma once

#include <string>
#include <utility>

#include "src/tools/replay/json_value.h"
#include "src/tools/replay/trace_event.h"

namespace vllm_metrics::replay {

// The first line of a trace, and the readers behind it.
void read_value(const JsonValue& value, TraceConfig& out);
void read_value(const JsonValue& value, WireVersion& out);
void read_value(const JsonValue& value, TextLogger& out);
void read_value(const JsonValue& value, KvConnector& out);
void read_value(const JsonValue& value, CudaGraphConfig& out);
void read_value(const JsonValue& value, ModelShape& out);
void read_value(const JsonValue& value,
                std::pair<std::string, std::string>& out);

}  // namespace vllm_metrics::replay
