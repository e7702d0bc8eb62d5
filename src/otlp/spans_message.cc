#include "src/otlp/spans_message.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <protozero/pbf_writer.hpp>

#include "src/otlp/message_parts.h"
#include "vllm_metrics/registry/labels.h"

namespace vllm_metrics::inline v0::otlp {
namespace {

enum class Kind { kInternal = 1, kServer = 2 };

using SpanId = std::array<std::uint8_t, 8>;

SpanId make_id(std::mt19937_64& random) {
  std::uint64_t word = 0;
  while (word == 0) word = random();
  SpanId id;
  std::memcpy(id.data(), &word, id.size());
  return id;
}

template <class Id>
void add_id(protozero::pbf_writer& span, std::uint32_t field, const Id& id) {
  span.add_bytes(field, reinterpret_cast<const char*>(id.data()), id.size());
}

// Nanoseconds since 1970.
struct Interval {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
};

// `seconds` as nanoseconds; a clock that went back makes none.
std::uint64_t length(double seconds) {
  return seconds > 0.0 && seconds < 1e9
             ? static_cast<std::uint64_t>(std::llround(seconds * 1e9))
             : 0;
}

// So long before `time`, but not before 1970.
std::uint64_t before(std::uint64_t time, double seconds) {
  return time - std::min(time, length(seconds));
}

// Where a request's phases lie. Their lengths are the engine clock's; the first
// output, which both clocks have seen, joins them to the wall clock.
struct Phases {
  explicit Phases(const EndedRequest& request) {
    const FinishedRequestStats& stats = request.stats;
    whole.end = nanoseconds(request.end);
    whole.start = before(whole.end, stats.e2e_latency);
    if (!stats.first_token_latency) {
      // It never got that far: it waited from its arrival on.
      if (stats.queued_time)
        queue = Interval{whole.start, whole.start + length(*stats.queued_time)};
      return;
    }
    const std::uint64_t first =
        whole.start + length(*stats.first_token_latency);
    if (stats.decode_time)
      decode = Interval{first, first + length(*stats.decode_time)};
    if (!stats.prefill_time) return;
    prefill = Interval{before(first, *stats.prefill_time), first};
    if (stats.queued_time)
      queue =
          Interval{before(prefill->start, *stats.queued_time), prefill->start};
  }

  // The first SCHEDULED.
  std::optional<std::uint64_t> scheduled() const {
    if (prefill) return prefill->start;
    if (queue) return queue->end;
    return std::nullopt;
  }

  Interval whole;
  std::optional<Interval> queue;
  std::optional<Interval> prefill;
  std::optional<Interval> decode;
};

// Writes attributes of a span: KeyValue is its field 9.
class Attributes {
 public:
  explicit Attributes(protozero::pbf_writer& span) : span_(span) {}

  void add(std::string_view key, std::string_view value) {
    add_attribute(span_, 9, key, value);
  }
  void add(std::string_view key, std::int64_t value) {
    put(key, [&](auto& any) { any.add_int64(3, value); });
  }
  void add(std::string_view key, double value) {
    put(key, [&](auto& any) { any.add_double(4, value); });
  }
  void add(std::string_view key, const std::optional<double>& value) {
    if (value) add(key, *value);
  }
  // A list of one.
  void add_list(std::string_view key, std::string_view value) {
    put(key, [&](auto& any) {
      protozero::pbf_writer list(any, 5);
      protozero::pbf_writer element(list, 1);
      add_text(element, 1, value);
    });
  }

 private:
  template <class Put>
  void put(std::string_view key, Put put_value) {
    protozero::pbf_writer pair(span_, 9);
    add_text(pair, 1, key);
    protozero::pbf_writer any(pair, 2);
    put_value(any);
  }

  protozero::pbf_writer& span_;
};

void add_attributes(protozero::pbf_writer& span, const SpanSource& source,
                    std::string_view model_name, const GenAiMetrics& gen_ai) {
  const FinishedRequestStats& stats = source.request.stats;
  Attributes out(span);
  if (!stats.request_id.empty())
    out.add("gen_ai.request.id", valid_utf8(stats.request_id.view()));
  out.add("gen_ai.request.model", model_name);
  out.add("gen_ai.response.model", model_name);
  out.add("gen_ai.operation.name", gen_ai.operation);
  out.add("gen_ai.provider.name", gen_ai.provider);
  if (stats.finish_reason == FinishReason::kError)
    out.add("error.type", "_OTHER");
  if (stats.max_tokens_param)
    out.add("gen_ai.request.max_tokens", *stats.max_tokens_param);
  out.add_list("gen_ai.response.finish_reasons", name_of(stats.finish_reason));
  out.add("gen_ai.usage.input_tokens", stats.num_prompt_tokens);
  out.add("gen_ai.usage.output_tokens", stats.num_generation_tokens);
  out.add("gen_ai.usage.cache_read.input_tokens", stats.num_cached_tokens);
  // The same as vLLM calls them.
  out.add("gen_ai.usage.prompt_tokens", stats.num_prompt_tokens);
  out.add("gen_ai.usage.completion_tokens", stats.num_generation_tokens);
  out.add("gen_ai.latency.time_in_queue", stats.queued_time);
  out.add("gen_ai.latency.time_to_first_token", stats.first_token_latency);
  out.add("gen_ai.latency.e2e", stats.e2e_latency);
  out.add("gen_ai.latency.time_in_model_prefill", stats.prefill_time);
  out.add("gen_ai.latency.time_in_model_decode", stats.decode_time);
  out.add("gen_ai.latency.time_in_model_inference", stats.inference_time);
  // Of our own.
  out.add("vllm_metrics.engine", std::int64_t{source.engine_index});
  out.add("vllm_metrics.num_preemptions", stats.num_preemptions);
}

// Span: events = 11, dropped_events_count = 12; Event: time = 1, name = 2.
void add_preemptions(protozero::pbf_writer& span,
                     const FinishedRequestStats& stats, const Phases& phases) {
  const auto scheduled = phases.scheduled();
  std::int64_t told = 0;
  for (const double seconds : stats.preemption_times.seconds()) {
    if (!scheduled) break;
    // Within the request, whatever the two clocks say.
    const std::uint64_t time =
        std::clamp(*scheduled + length(seconds), phases.whole.start,
                   std::max(phases.whole.start, phases.whole.end));
    protozero::pbf_writer event(span, 11);
    event.add_fixed64(1, time);
    add_text(event, 2, "preemption");
    ++told;
  }
  const std::int64_t untold = stats.num_preemptions - told;
  if (untold <= 0) return;
  Attributes(span).add("vllm_metrics.num_preemptions_without_event", untold);
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
  span.add_uint32(12, static_cast<std::uint32_t>(std::min(untold, kMost)));
}

void add_head(protozero::pbf_writer& span, const TraceContext& trace,
              const SpanId& id, const SpanId& parent, std::string_view name,
              Kind kind, const Interval& when) {
  add_id(span, 1, trace.trace_id);
  add_id(span, 2, id);
  if (parent != SpanId{}) add_id(span, 4, parent);
  add_text(span, 5, name);
  span.add_enum(6, static_cast<std::int32_t>(kind));
  span.add_fixed64(7, when.start);
  span.add_fixed64(8, when.end);
}

void add_request(protozero::pbf_writer& scope_spans, const SpanSource& source,
                 std::string_view model_name, const GenAiMetrics& gen_ai,
                 std::mt19937_64& random) {
  const FinishedRequestStats& stats = source.request.stats;
  const Phases phases(source.request);
  const SpanId id = make_id(random);
  {
    constexpr std::int32_t kErrorCode = 2;
    protozero::pbf_writer span(scope_spans, 2);
    add_head(span, stats.trace, id, stats.trace.span_id, "llm_request",
             Kind::kServer, phases.whole);
    add_attributes(span, source, model_name, gen_ai);
    add_preemptions(span, stats, phases);
    if (stats.finish_reason == FinishReason::kError) {
      protozero::pbf_writer status(span, 15);
      status.add_enum(3, kErrorCode);
    }
  }
  const auto add_phase = [&](std::string_view name,
                             const std::optional<Interval>& when) {
    if (!when) return;
    protozero::pbf_writer span(scope_spans, 2);
    add_head(span, stats.trace, make_id(random), id, name, Kind::kInternal,
             *when);
  };
  add_phase("queue", phases.queue);
  add_phase("prefill", phases.prefill);
  add_phase("decode", phases.decode);
}

}  // namespace

std::string encode(std::span<const SpanSource> requests,
                   std::string_view model_name, const Settings& settings,
                   std::mt19937_64& random) {
  const GenAiMetrics gen_ai = settings.gen_ai.value_or(GenAiMetrics{});
  std::string out;
  protozero::pbf_writer request(out);
  {
    protozero::pbf_writer resource_spans(request, 1);
    add_resource(resource_spans, 1, settings.resource);
    protozero::pbf_writer scope_spans(resource_spans, 2);
    add_scope(scope_spans, 1);
    for (const SpanSource& source : requests)
      add_request(scope_spans, source, model_name, gen_ai, random);
  }
  return out;
}

}  // namespace vllm_metrics::inline v0::otlp
