#include "src/otlp/span_push.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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
};

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
  void end(FinishedRequestStats stats, int times = 1) {
    IterationStats step;
    step.iteration_timestamp = 1'700'000'010.0;
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

TEST_CASE("Spans: a request that never had an output waited, no more",
          "[otlp]") {
  Bench bench;
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

}  // namespace
}  // namespace vllm_metrics::otlp
