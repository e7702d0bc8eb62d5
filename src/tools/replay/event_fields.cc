#include "src/tools/replay/event_fields.h"

#include <algorithm>
#include <array>

#include "src/tools/replay/config_fields.h"
#include "src/tools/replay/stats_fields.h"

namespace vllm_metrics::replay {
namespace {

using Record = RecordEvent;
constexpr Field<Record> kRecordFields[] = {
    field<Record, &Record::engine>("engine"),
    field<Record, &Record::scheduler>("scheduler"),
    field<Record, &Record::iteration>("iteration"),
    field<Record, &Record::mm_cache>("mm_cache"),
};

constexpr Field<SleepState> kSleepFields[] = {
    required_field<SleepState, &SleepState::sleep>("sleep"),
    field<SleepState, &SleepState::level>("level"),
};

using Request = RequestEvent;
constexpr Field<Request> kRequestFields[] = {
    required_field<Request, &Request::id>("id"),
    required_field<Request, &Request::arrival>("arrival"),
    required_field<Request, &Request::prompt_len>("prompt_len"),
    field<Request, &Request::max_tokens>("max_tokens"),
    field<Request, &Request::lora>("lora"),
    field<Request, &Request::parent>("parent"),
};

constexpr Field<RequestOutput> kRequestOutputFields[] = {
    required_field<RequestOutput, &RequestOutput::id>("id"),
    field<RequestOutput, &RequestOutput::tokens>("tokens"),
    nullable_field<RequestOutput, &RequestOutput::events>("events"),
    field<RequestOutput, &RequestOutput::prefill>("prefill"),
    field<RequestOutput, &RequestOutput::nans>("nans"),
    field<RequestOutput, &RequestOutput::finish>("finish"),
};

using Output = OutputEvent;
constexpr Field<Output> kOutputFields[] = {
    field<Output, &Output::engine>("engine"),
    required_field<Output, &Output::ts>("ts"),
    required_field<Output, &Output::outputs>("outputs"),
    field<Output, &Output::scheduler>("scheduler"),
    field<Output, &Output::mm_cache>("mm_cache"),
};

constexpr Field<AbortEvent> kAbortFields[] = {
    required_field<AbortEvent, &AbortEvent::ids>("ids"),
};

constexpr Field<KvBlockEvent> kKvBlockFields[] = {
    field<KvBlockEvent, &KvBlockEvent::engine>("engine"),
    required_field<KvBlockEvent, &KvBlockEvent::call>("event"),
    nullable_field<KvBlockEvent, &KvBlockEvent::block>("block"),
};

// What every line has beside the fields of its op.
struct LineFrame {
  std::string op;
  ClockReading clocks;
};

template <auto kMember>
void read_clock(const JsonValue& value, LineFrame& out) {
  read_value(value, out.clocks.*kMember);
}

constexpr Field<LineFrame> kFrameFields[] = {
    required_field<LineFrame, &LineFrame::op>("op"),
    {"wall", read_clock<&ClockReading::wall>},
    {"mono", read_clock<&ClockReading::mono>},
    {"mono_ns", read_clock<&ClockReading::mono_ns>},
};

template <class Event>
void read_action(const JsonValue& line, TraceAction& out) {
  read_value(line, out.emplace<Event>());
}

struct Op {
  std::string_view name;
  void (*read)(const JsonValue& line, TraceAction& out);
};

constexpr std::array<Op, 11> kOps = {{
    {"config", read_action<TraceConfig>},
    {"init", read_action<InitEvent>},
    {"record", read_action<RecordEvent>},
    {"sleep", read_action<SleepEvent>},
    {"log", read_action<LogEvent>},
    {"tick", read_action<TickEvent>},
    {"request", read_action<RequestEvent>},
    {"output", read_action<OutputEvent>},
    {"abort", read_action<AbortEvent>},
    {"kv_block", read_action<KvBlockEvent>},
    {"snapshot", read_action<SnapshotEvent>},
}};

// Takes the fields that every line may have out of `line`.
LineFrame take_frame(Json& line, LineReport& report) {
  LineFrame frame;
  Json taken = Json::object();
  for (const Field<LineFrame>& field : kFrameFields) {
    const auto found = line.find(field.name);
    if (found == line.end()) continue;
    taken[found.key()] = std::move(*found);
    line.erase(found);
  }
  read_object(JsonValue(taken, report), frame, kFrameFields);
  return frame;
}

}  // namespace

void read_event(Json line, LineReport& report, TraceEvent& out) {
  const JsonValue value(line, report);
  if (!line.is_object()) return value.refuse("an object with an \"op\"");
  const LineFrame frame = take_frame(line, report);
  if (!report.error.empty()) return;
  out.clocks = frame.clocks;
  for (const Op& op : kOps) {
    if (op.name == frame.op) return op.read(value, out.action);
  }
  std::string allowed;
  for (const Op& op : kOps) allowed.append(" ").append(op.name);
  value.fail("op: \"" + frame.op + "\" is not allowed: one of" + allowed);
}

void read_value(const JsonValue& value, InitEvent& out) {
  read_object(value, out, {});
}

void read_value(const JsonValue& value, RecordEvent& out) {
  read_object(value, out, kRecordFields);
}

void read_value(const JsonValue& value, SleepEvent& out) {
  read_object(value, out.state, kSleepFields);
}

void read_value(const JsonValue& value, LogEvent& out) {
  read_object(value, out, {});
}

void read_value(const JsonValue& value, TickEvent& out) {
  read_object(value, out, {});
}

void read_value(const JsonValue& value, RequestEvent& out) {
  read_object(value, out, kRequestFields);
}

void read_value(const JsonValue& value, OutputEvent& out) {
  read_object(value, out, kOutputFields);
}

void read_value(const JsonValue& value, AbortEvent& out) {
  read_object(value, out, kAbortFields);
}

void read_value(const JsonValue& value, KvBlockEvent& out) {
  read_object(value, out, kKvBlockFields);
}

void read_value(const JsonValue& value, KvBlockEvent::Call& out) {
  using Call = KvBlockEvent::Call;
  constexpr std::array<std::pair<std::string_view, Call>, 4> kCalls = {
      {{"alloc", Call::kAllocated},
       {"access", Call::kAccessed},
       {"evict", Call::kEvicted},
       {"reset", Call::kReset}}};
  read_name(value, kCalls, R"("alloc", "access", "evict" or "reset")", out);
}

void read_value(const JsonValue& value, SnapshotEvent& out) {
  read_object(value, out, {});
}

void read_value(const JsonValue& value, ParentRef& out) {
  if (!value.is_array_of(2, "null or a pair [parent id, n]")) return;
  read_value(value.element(0), out.id);
  read_value(value.element(1), out.n);
  if (out.n < 1) value.element(1).refuse("1 or more");
}

void read_value(const JsonValue& value, RequestOutput& out) {
  read_object(value, out, kRequestOutputFields);
}

void read_value(const JsonValue& value, EngineCoreEvent& out) {
  using Type = EngineCoreEvent::Type;
  constexpr std::array<std::pair<std::string_view, Type>, 3> kTypes = {
      {{"queued", Type::kQueued},
       {"scheduled", Type::kScheduled},
       {"preempted", Type::kPreempted}}};
  if (!value.is_array_of(2, "a pair [event name, timestamp]")) return;
  read_name(value.element(0), kTypes, R"("queued", "scheduled" or "preempted")",
            out.type);
  read_value(value.element(1), out.timestamp);
}

void read_value(const JsonValue& value, PrefillStats& out) {
  if (!value.is_array_of(
          3, "null or [prompt tokens, local cached, external cached]")) {
    return;
  }
  read_value(value.element(0), out.num_prompt_tokens);
  read_value(value.element(1), out.num_local_cached_tokens);
  read_value(value.element(2), out.num_external_cached_tokens);
}

}  // namespace vllm_metrics::replay
