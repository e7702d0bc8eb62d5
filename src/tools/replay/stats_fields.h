#pragma once

#include "src/tools/replay/json_value.h"
#include "src/tools/replay/trace_event.h"
#include "vllm_metrics/stats/cache_stats.h"
#include "vllm_metrics/stats/finish_reason.h"
#include "vllm_metrics/stats/iteration_stats.h"

namespace vllm_metrics::replay {

// The `scheduler`, `iteration` and `mm_cache` objects of a trace, read into the
// structs an engine fills. Fields that are not there keep their default.
void read_value(const JsonValue& value, CacheStats& out);
void read_value(const JsonValue& value, PrefixCacheStats& out);
void read_value(const JsonValue& value, TraceScheduler& out);
void read_value(const JsonValue& value, IterationStats& out);
void read_value(const JsonValue& value, PromptTokenStats& out);
void read_value(const JsonValue& value, FinishedRequestStats& out);
void read_value(const JsonValue& value, FinishReason& out);

}  // namespace vllm_metrics::replay
