#pragma once

#include "src/tools/replay/json_value.h"
#include "src/tools/replay/trace_event.h"

namespace vllm_metrics::replay {

// Reads a line of a trace: its clocks, and what its `op` says.
void read_event(Json line, LineReport& report, TraceEvent& out);

// The readers behind it, one for each struct of a trace.
void read_value(const JsonValue& value, InitEvent& out);
void read_value(const JsonValue& value, RecordEvent& out);
void read_value(const JsonValue& value, SleepEvent& out);
void read_value(const JsonValue& value, LogEvent& out);
void read_value(const JsonValue& value, TickEvent& out);
void read_value(const JsonValue& value, RequestEvent& out);
void read_value(const JsonValue& value, OutputEvent& out);
void read_value(const JsonValue& value, AbortEvent& out);
void read_value(const JsonValue& value, KvBlockEvent& out);
void read_value(const JsonValue& value, KvBlockEvent::Call& out);
void read_value(const JsonValue& value, SnapshotEvent& out);
void read_value(const JsonValue& value, ParentRef& out);
void read_value(const JsonValue& value, EngineCoreEvent& out);
void read_value(const JsonValue& value, PrefillStats& out);
void read_value(const JsonValue& value, RequestOutput& out);

}  // namespace vllm_metrics::replay
