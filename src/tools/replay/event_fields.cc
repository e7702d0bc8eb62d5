#include "src/tools/replay/event_fields.h"

#include <algorithm>
#include <array>

#include "src/tools/replay/stats_fields.h"

namespace vllm_metrics::replay {
namespace {

using Config = TraceConfig;
constexpr Field<Config> kConfigFields[] = {
    ignored_field<Config>("format"),  // was looked at first
    field<Config, &Config::profile>("profile"),
    ignored_field<Config>("vllm_version"),
    required_field<Config, &Config::model_name>("model_name"),
    required_field<Config, &Config::max_model_len>("max_model_len"),
    field<Config, &Config::engine_indexes>("engine_indexes"),
    field<Config, &Config::logger>("logger"),
    field<Config, &Config::client_count>("client_count"),
    unsupported_field<Config>("lora"),
    unsupported_field<Config>("speculative"),
    unsupported_field<Config>("is_diffusion"),
    unsupported_field<Config>("kv_cache_metrics"),
    unsupported_field<Config>("enable_mfu_metrics"),
    unsupported_field<Config>("debug_mfu"),
    unsupported_field<Config>("model"),
    unsupported_field<Config>("kv_connector"),
    unsupported_field<Config>("show_hidden_metrics_for_version"),
    field<Config, &Config::compute_nans_in_logits>("compute_nans_in_logits"),
    unsupported_field<Config>("cudagraph"),
    field<Config, &Config::num_gpu_blocks>("num_gpu_blocks"),
    field<Config, &Config::cache_config>("cache_config"),
};

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
    unsupported_field<Request>("lora"),
    field<Request, &Request::parent>("parent"),
};

// `events` may be null.
constexpr Field<RequestOutput> kEventsField = {
    "events", [](const JsonValue& value, RequestOutput& out) {
      if (!value.json().is_null()) read_value(value, out.events);
    }};

constexpr Field<RequestOutput> kRequestOutputFields[] = {
    required_field<RequestOutput, &RequestOutput::id>("id"),
    field<RequestOutput, &RequestOutput::tokens>("tokens"),
    kEventsField,
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

// What every line has beside the fields of its op.
struct LineFrame {
  std::string op;
  ClockReading clocks;
};

template <auto kMember>
constexpr Field<LineFrame> clock_field(std::string_view name) {
  return {name, [](const JsonValue& value, LineFrame& out) {
            read_value(value, out.clocks.*kMember);
          }};
}

constexpr Field<LineFrame> kFrameFields[] = {
    required_field<LineFrame, &LineFrame::op>("op"),
    clock_field<&ClockReading::wall>("wall"),
    clock_field<&ClockReading::mono>("mono"),
    clock_field<&ClockReading::mono_ns>("mono_ns"),
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
    {"snapshot", read_action<SnapshotEvent>},
    {"kv_block",
     [](const JsonValue& line, TraceAction&) {
       line.fail("op \"kv_block\" is not supported yet");
     }},
}};

// Takes the fields that every line may have out of `line`.
LineFrame take_frame(nlohmann::json& line, LineReport& report) {
  LineFrame frame;
  nlohmann::json taken = nlohmann::json::object();
  for (const Field<LineFrame>& field : kFrameFields) {
    const auto found = line.find(field.name);
    if (found == line.end()) continue;
    taken[found.key()] = std::move(*found);
    line.erase(found);
  }
  read_object(JsonValue(taken, report), frame, kFrameFields);
  return frame;
}

template <class Enum, std::size_t kSize>
void read_name(
    const JsonValue& value,
    const std::array<std::pair<std::string_view, Enum>, kSize>& names,
    std::string_view allowed, Enum& out) {
  for (const auto& [name, meaning] : names) {
    if (value.json() == name) {
      out = meaning;
      return;
    }
  }
  value.refuse(allowed);
}

}  // namespace

void read_event(nlohmann::json line, LineReport& report, TraceEvent& out) {
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

void read_value(const JsonValue& value, TraceConfig& out) {
  if (!value.json().contains("format")) return value.fail_missing("format");
  if (value.json()["format"] != 1) {
    return value.member("format").refuse("1, the only format there is");
  }
  read_object(value, out, kConfigFields);
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

void read_value(const JsonValue& value, SnapshotEvent& out) {
  read_object(value, out, {});
}

void read_value(const JsonValue& value, WireVersion& out) {
  constexpr std::array<std::pair<std::string_view, WireVersion>, 4> kProfiles =
      {{{"0.27", {0, 27}},
        {"0.28", {0, 28}},
        {"0.29", {0, 29}},
        {"0.30", {0, 30}}}};
  read_name(value, kProfiles, R"("0.27" to "0.30")", out);
}

void read_value(const JsonValue& value, TextLogger& out) {
  constexpr std::array<std::pair<std::string_view, TextLogger>, 3> kLoggers = {
      {{"none", TextLogger::kNone},
       {"per_engine", TextLogger::kPerEngine},
       {"aggregated", TextLogger::kAggregated}}};
  read_name(value, kLoggers, R"("per_engine", "aggregated" or "none")", out);
}

void read_value(const JsonValue& value,
                std::pair<std::string, std::string>& out) {
  if (!value.is_array_of(2, "a pair [key, value] of texts")) return;
  read_value(value.element(0), out.first);
  read_value(value.element(1), out.second);
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
