#pragma once

#include <vector>

#include "src/tools/replay/json_value.h"
#include "src/tools/replay/trace_event.h"

namespace vllm_metrics::replay {

// The parts of a `scheduler` object that not every engine has.
void read_value(const JsonValue& value, SpecDecodingStats& out);
void read_value(const JsonValue& value, NixlStats& out);
void read_value(const JsonValue& value, KvCacheEvictionEvent& out);
void read_value(const JsonValue& value, IterationDetails& out);

// An object of counts by adapter; their order is that of the object.
void read_value(const JsonValue& value, std::vector<AdapterCount>& out);

// Those that a TraceScheduler has in several members.
void read_perf_stats(const JsonValue& value, TraceScheduler& out);
void read_cudagraph_stats(const JsonValue& value, TraceScheduler& out);

}  // namespace vllm_metrics::replay
