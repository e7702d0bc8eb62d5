#include "src/otlp/span_push.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/allocation_count.h"
#include "tests/loggers/surroundings.h"
#include "tests/otlp/received.h"

namespace vllm_metrics::otlp {
namespace {

using testing::ManualClock;
using testing::ScriptedTransport;

const TraceContext kSampled = *parse_traceparent(
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");

struct Span {
  std::string trace_id = {};
  std::string parent = {};
  std::string name = {};
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  bool failed = false;
  std::vector<std::uint64_t> preemptions = {};  // their times
  std::uint32_t dropped_events = 0;
  std::map<std::string, std::int64_t> numbers = {};  // attributes
  std::map<std::string, std::string> texts = {};     // attributes
};

std::uint64_t read_event(protozero::pbf_reader event) {
  std::uint64_t time = 0;
  while (event.next()) {
    if (event.tag() == 1) {
      time = event.get_fixed64();
    } else {
      CHECK(event.get_string() == "preemption");
    }
  }
  return time;
}

void read_attribute(protozero::pbf_reader pair, Span& span) {
  std::string key;
  while (pair.next()) {
    if (pair.tag() == 1) {
      key = pair.get_string();
      continue;
    }
    protozero::pbf_reader any = pair.get_message();
    while (any.next()) {
      if (any.tag() == 3) {
        span.numbers[key] = any.get_int64();
      } else if (any.tag() == 1) {
        span.texts[key] = any.get_string();
      } else {
        any.skip();
      }
    }
  }
}

std::vector<Span> read_spans(const std::string& bytes) {
  std::vector<Span> spans;
  protozero::pbf_reader request(bytes);
  while (request.next(1)) {
    protozero::pbf_reader resource_spans = request.get_message();
    while (resource_spans.next(2)) {
      protozero::pbf_reader scope_spans = resource_spans.get_message();
      while (scope_spans.next(2)) {
        protozero::pbf_reader message = scope_spans.get_message();
        Span span;
        while (message.next()) {
          switch (message.tag()) {
            case 1:
              span.trace_id = message.get_string();
              break;
            case 4:
              span.parent = message.get_string();
              break;
            case 5:
              span.name = message.get_string();
              break;
            case 7:
              span.start = message.get_fixed64();
              break;
            case 8:
              span.end = message.get_fixed64();
              break;
            case 9:
              read_attribute(message.get_message(), span);
              break;
            case 11:
              span.preemptions.push_back(read_event(message.get_message()));
              break;
            case 12:
              span.dropped_events = message.get_uint32();
              break;
            case 15:
              span.failed = true;
              message.skip();
              break;
            default:
              message.skip();
          }
        }
        spans.push_back(span);
      }
    }
  }
  return spans;
}

struct Bench {
  explicit Bench(Settings settings = {}) {
    settings.url = "http://c/v1/traces";
    auto metrics = ExporterMetrics::create(*registry, Signal::kTraces, log);
    REQUIRE(metrics.ok());
    lanes = std::make_shared<SpanLanes>(settings, *std::move(metrics));
    logger = std::make_unique<SpanStatLogger>(lanes, "m", 0, 1);
    push = std::make_unique<SpanPush>(lanes,
                                      Delivery(settings, transport, clock,
                                               [this](double seconds) {
                                                 clock->advance(seconds);
                                                 return true;
                                               }),
                                      2);
  }
  void end(FinishedRequestStats stats, int times = 1,
           double time = 1'700'000'010.0) {
    IterationStats step;
    step.iteration_timestamp = time;
    for (int i = 0; i < times; ++i) step.finished_requests.push_back(stats);
    logger->record({.iteration = &step});
  }
  std::vector<Span> sent() const {
    std::vector<Span> all;
    for (const std::string& body : transport->bodies)
      for (const Span& span : read_spans(body)) all.push_back(span);
    return all;
  }
  std::string lost(const std::string& reason) const {
    return testing::value(std::string(TextFormat().render(*registry)),
                          "vllm_metrics_otlp_lost_items_total{reason=\"" +
                              reason + "\",signal=\"traces\"}");
  }

  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  std::shared_ptr<Registry> registry = Registry::create();
  std::shared_ptr<testing::CapturedLog> log =
      std::make_shared<testing::CapturedLog>();
  std::shared_ptr<ScriptedTransport> transport =
      std::make_shared<ScriptedTransport>();
  std::shared_ptr<SpanLanes> lanes;
  std::unique_ptr<SpanStatLogger> logger;
  std::unique_ptr<SpanPush> push;
};

// A request that arrives at 1.7e9 s, is scheduled 2 s later, at 52 s of the
// engine's clock, and has its first output at 53 s of it.
constexpr double kArrival = 1'700'000'000.0;

RequestStateStats started_request() {
  RequestStateStats request{.arrival_time = kArrival, .trace = kSampled};
  IterationStats step;
  step.reset(kArrival + 3.0);
  const EngineCoreEvent events[] = {{EngineCoreEvent::Type::kQueued, 50.5},
                                    {EngineCoreEvent::Type::kScheduled, 52.0}};
  step.update_from_output({.num_new_tokens = 1, .events = events}, 53.0,
                          request);
  return request;
}

// Preempted at these times of the engine's clock, each time scheduled again
// after a quarter of a second; ends at 60 s of it.
IterationStats end_with_preemptions(const std::vector<double>& times) {
  RequestStateStats request = started_request();
  std::vector<EngineCoreEvent> events;
  for (const double time : times) {
    events.push_back({EngineCoreEvent::Type::kPreempted, time});
    events.push_back({EngineCoreEvent::Type::kScheduled, time + 0.25});
  }
  IterationStats step;
  step.reset(kArrival + 10.0);
  step.update_from_output({.num_new_tokens = 1, .events = events}, 60.0,
                          request);
  step.update_from_finished_request(FinishReason::kLength, request);
  return step;
}

TEST_CASE(
    "Spans: the caller's flag decides, and those without a caller are "
    "roots by ratio",
    "[otlp]") {
  Settings settings;
  settings.root_ratio = 0.25;
  Bench bench(settings);
  TraceContext unsampled = kSampled;
  unsampled.flags = 0;
  bench.end({.trace = unsampled}, 100);
  REQUIRE(bench.push->run(10.0));
  CHECK(bench.sent().empty());

  bench.end({.trace = kSampled});
  REQUIRE(bench.push->run(10.0));
  REQUIRE(bench.sent().size() == 2);  // the request, and its queue
  CHECK(bench.sent()[0].parent.size() == 8);
  CHECK(bench.sent()[0].trace_id ==
        std::string(kSampled.trace_id.begin(), kSampled.trace_id.end()));

  bench.transport->bodies.clear();
  bench.end({.queued_time = {}}, 2000);
  REQUIRE(bench.push->run(10.0));
  const auto roots = bench.sent();
  CHECK(roots.size() > 400);
  CHECK(roots.size() < 600);
  CHECK(roots[0].parent.empty());
  CHECK(roots[0].trace_id != roots[1].trace_id);
}

TEST_CASE("Spans: a ratio takes the traces that other SDKs take", "[otlp]") {
  Settings settings;
  settings.root_ratio = 0.25;
  settings.parent_based = false;
  Bench bench(settings);
  const auto is_taken = [&](std::uint8_t first_of_low, std::uint8_t rest) {
    TraceContext trace = kSampled;
    std::fill(trace.trace_id.begin() + 8, trace.trace_id.end(), rest);
    trace.trace_id[8] = first_of_low;
    bench.transport->bodies.clear();
    bench.end({.trace = trace});
    REQUIRE(bench.push->run(10.0));
    return !bench.sent().empty();
  };
  CHECK(is_taken(0x00, 0x01));
  CHECK(is_taken(0x3f, 0x00));
  CHECK_FALSE(is_taken(0x40, 0x00));
  CHECK_FALSE(is_taken(0x7f, 0xff));
  CHECK_FALSE(is_taken(0x80, 0x00));  // the top bit counts
  CHECK_FALSE(is_taken(0x9f, 0xff));
  CHECK_FALSE(is_taken(0xff, 0xff));
}

TEST_CASE("Spans: a request that never had an output waited, no more",
          "[otlp]") {
  Settings settings;
  settings.gen_ai = GenAiMetrics{.provider = "p", .operation = "chat"};
  Bench bench(settings);
  bench.end({.finish_reason = FinishReason::kError,
             .e2e_latency = 4.0,
             .queued_time = 3.0,
             .prefill_time = {},
             .inference_time = {},
             .decode_time = {},
             .trace = kSampled});
  bench.push->run(10.0);
  const auto spans = bench.sent();
  REQUIRE(spans.size() == 2);
  CHECK(spans[0].failed);
  CHECK(spans[0].texts.at("error.type") == "_OTHER");
  CHECK(spans[0].texts.at("gen_ai.operation.name") == "chat");
  CHECK(spans[0].texts.at("gen_ai.provider.name") == "p");
  CHECK(spans[0].start == 1'700'000'006'000'000'000U);
  CHECK(spans[1].name == "queue");
  CHECK(spans[1].start == spans[0].start);
  CHECK(spans[1].end == spans[0].start + 3'000'000'000U);
}

TEST_CASE("Spans: what is lost is counted by why", "[otlp]") {
  Settings settings;
  settings.span_queue = 8;
  settings.span_batch = 4;
  Bench bench(settings);
  bench.end({.trace = kSampled}, 11);
  CHECK(bench.lost("queue_full") == "6.0");

  bench.transport->answers = {{.status = 400}};
  CHECK_FALSE(bench.push->run(10.0));
  CHECK(bench.lost("not_delivered") == "8.0");
  CHECK(bench.push->run(10.0));
  CHECK(bench.transport->bodies.size() == 2);
  bench.end({.trace = kSampled}, 8);
  CHECK(bench.lost("queue_full") == "6.0");
}

TEST_CASE("Spans: they wait in the queue for as long as the server asked to",
          "[otlp]") {
  Settings settings;
  settings.span_queue = 8;
  settings.span_batch = 4;
  Bench bench(settings);
  bench.transport->answers = {{.status = 503, .retry_after = 60.0}};
  bench.end({.trace = kSampled});
  CHECK_FALSE(bench.push->run(10.0));
  CHECK(bench.lost("not_delivered") == "2.0");
  for (int i = 0; i < 4; ++i) {
    bench.end({.trace = kSampled}, 2);
    CHECK_FALSE(bench.push->run(10.0));
    bench.clock->advance(5.0);
  }
  CHECK(bench.lost("queue_full") == "0.0");
  bench.end({.trace = kSampled});
  CHECK(bench.lost("queue_full") == "2.0");
  CHECK(bench.lost("not_delivered") == "2.0");
  CHECK(bench.transport->bodies.size() == 1);
  bench.clock->advance(40.0);
  CHECK(bench.push->run(10.0));
  CHECK(bench.transport->bodies.size() == 3);
}

TEST_CASE("Spans: a full batch is worth an export, a full queue too",
          "[otlp]") {
  Settings settings;
  settings.span_queue = 8;
  settings.span_batch = GENERATE(4U, 512U);
  Bench bench(settings);
  const int enough = settings.span_batch == 4 ? 4 : 8;
  bench.end({.trace = kSampled}, enough - 1);
  CHECK_FALSE(bench.lanes->has_full_batch());
  bench.end({.trace = kSampled});
  CHECK(bench.lanes->has_full_batch());
  CHECK(bench.push->run(10.0));
  CHECK_FALSE(bench.lanes->has_full_batch());
}

TEST_CASE("Spans: a step allocates nothing, whether the queue is full or not",
          "[otlp]") {
  Settings settings;
  settings.span_queue = 8;
  Bench bench(settings);
  const IterationStats step = end_with_preemptions({54.5, 57.25});
  CHECK(allocations_of([&] {
          for (int i = 0; i < 20; ++i)
            bench.logger->record({.iteration = &step});
          bench.lanes->closed = true;
          bench.logger->record({.iteration = &step});
        }) == 0);
  CHECK(bench.lost("queue_full") == "48.0");
  CHECK(bench.lost("not_delivered") == "4.0");
}

TEST_CASE("Spans: clocks that went back make no span that is endless",
          "[otlp]") {
  Bench bench;
  bench.end({.e2e_latency = -5.0,
             .queued_time = -1.0,
             .prefill_time = -2.0,
             .decode_time = -3.0,
             .first_token_latency = -1.0,
             .trace = kSampled});
  bench.push->run(10.0);
  for (const Span& span : bench.sent()) {
    CAPTURE(span.name);
    CHECK(span.start == 1'700'000'010'000'000'000U);
    CHECK(span.end == span.start);
  }
}

TEST_CASE("Spans: none begins before 1970", "[otlp]") {
  Bench bench;
  bench.end({.e2e_latency = 5.0,
             .queued_time = 20.0,
             .prefill_time = 30.0,
             .decode_time = 1.0,
             .first_token_latency = 4.0,
             .trace = kSampled},
            1, 10.0);
  REQUIRE(bench.push->run(10.0));
  const auto spans = bench.sent();
  REQUIRE(spans.size() == 4);
  for (const Span& span : spans) {
    CAPTURE(span.name);
    CHECK(span.start <= span.end);
    CHECK(span.end <= 10'000'000'000U);
  }
}

TEST_CASE("Spans: what a logger left behind is sent, then its lane goes",
          "[otlp]") {
  Bench bench;
  bench.end({.trace = kSampled});
  bench.logger.reset();
  CHECK(bench.push->run(10.0));
  CHECK(bench.sent().size() == 2);
  MutexLock lock(bench.lanes->mutex);
  CHECK(bench.lanes->all.empty());
}

constexpr std::uint64_t kNanoseconds = 1'000'000'000;

TEST_CASE("Spans: preemptions are events, at the times given to the stats",
          "[otlp]") {
  Bench bench;
  const IterationStats step = end_with_preemptions({54.5, 57.25});
  bench.logger->record({.iteration = &step});
  REQUIRE(bench.push->run(10.0));
  const auto spans = bench.sent();
  REQUIRE(spans.size() == 4);
  const Span& root = spans[0];
  const Span& queue = spans[1];
  REQUIRE(queue.name == "queue");
  CHECK(queue.end == root.start + 2 * kNanoseconds);
  // 2.5 and 5.25 s behind the first SCHEDULED.
  CHECK(root.preemptions ==
        std::vector<std::uint64_t>{queue.end + 2'500'000'000,
                                   queue.end + 5'250'000'000});
  for (const std::uint64_t time : root.preemptions) {
    CHECK(time >= queue.end);
    CHECK(time <= root.end);
  }
  CHECK(root.dropped_events == 0);
  CHECK(root.numbers.at("vllm_metrics.num_preemptions") == 2);
  CHECK(root.numbers.count("vllm_metrics.num_preemptions_without_event") == 0);
  for (std::size_t i = 1; i < spans.size(); ++i)
    CHECK(spans[i].preemptions.empty());
}

TEST_CASE("Spans: preemptions beyond the eighth are a number", "[otlp]") {
  Bench bench;
  const IterationStats step = end_with_preemptions(
      {53.5, 54.0, 54.5, 55.0, 55.5, 56.0, 56.5, 57.0, 57.5, 58.0, 58.5});
  bench.logger->record({.iteration = &step});
  REQUIRE(bench.push->run(10.0));
  const Span root = bench.sent().at(0);
  CHECK(root.preemptions.size() == 8);
  CHECK(root.preemptions.back() == root.start + 7 * kNanoseconds);
  CHECK(root.dropped_events == 3);
  CHECK(root.numbers.at("vllm_metrics.num_preemptions") == 11);
  CHECK(root.numbers.at("vllm_metrics.num_preemptions_without_event") == 3);
}

TEST_CASE("Spans: a preemption lies within its request, whatever is claimed",
          "[otlp]") {
  Bench bench;
  FinishedRequestStats stats{.e2e_latency = 2.0,
                             .num_preemptions = 5,
                             .first_token_latency = 1.0,
                             .trace = kSampled};
  for (const double claimed : {-7.0, 0.5, 1e300, std::nan("")})
    stats.preemption_times.add(claimed);
  bench.end(stats);
  bench.end({.queued_time = {}, .num_preemptions = 1, .trace = kSampled});
  REQUIRE(bench.push->run(10.0));
  const auto spans = bench.sent();
  const Span& root = spans[0];
  CHECK(root.preemptions.size() == 4);
  for (const std::uint64_t time : root.preemptions) {
    CHECK(time >= root.start);
    CHECK(time <= root.end);
  }
  CHECK(root.dropped_events == 1);
  // When it was scheduled is not known.
  CHECK(spans.back().preemptions.empty());
  CHECK(spans.back().dropped_events == 1);
}

TEST_CASE("Spans: of an aborted request too children add up to its life",
          "[otlp]") {
  Bench bench;
  RequestStateStats request = started_request();
  IterationStats step;
  const EngineCoreEvent events[] = {{EngineCoreEvent::Type::kPreempted, 54.0}};
  step.reset(kArrival + 5.0);
  step.update_from_events(events, request);
  step.update_from_ended_request(FinishReason::kAbort, 55.0, request);
  bench.logger->record({.iteration = &step});
  REQUIRE(bench.push->run(10.0));
  const auto spans = bench.sent();
  const FinishedRequestStats& stats = step.finished_requests.at(0);
  REQUIRE(spans.size() == 4);
  CHECK(spans[0].end - spans[0].start == 5 * kNanoseconds);
  CHECK_FALSE(spans[0].failed);
  CHECK(spans[0].preemptions ==
        std::vector<std::uint64_t>{spans[0].start + 4 * kNanoseconds});
  for (const auto& [index, seconds] :
       {std::pair(1U, *stats.queued_time), std::pair(2U, *stats.prefill_time),
        std::pair(3U, *stats.decode_time)})
    CHECK(static_cast<double>(spans[index].end - spans[index].start) ==
          seconds * 1e9);
  CHECK(spans[1].end == spans[2].start);
  CHECK(spans[2].end == spans[3].start);
}

}  // namespace
}  // namespace vllm_metrics::otlp
