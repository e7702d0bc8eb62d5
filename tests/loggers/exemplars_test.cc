#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/allocation_counter.h"
#include "tests/loggers/surroundings.h"
#include "vllm_metrics/exposition/open_metrics.h"
#include "vllm_metrics/exposition/text_parser.h"
#include "vllm_metrics/loggers/prometheus_stat_logger.h"

namespace vllm_metrics {
namespace {

using namespace vllm_metrics::testing;

constexpr std::string_view kE2e = "vllm:e2e_request_latency_seconds";
constexpr std::string_view kTraceparent =
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

// A request all of whose latencies are `seconds`.
FinishedRequestStats finished(double seconds, const TraceContext& trace) {
  return {.e2e_latency = seconds,
          .queued_time = seconds,
          .prefill_time = seconds,
          .inference_time = seconds,
          .decode_time = seconds,
          .mean_time_per_output_token = seconds,
          .first_token_latency = seconds,
          .trace = trace};
}

// Number `n`, from 1, in all of its ids.
TraceContext numbered(std::uint64_t n) {
  TraceContext trace{.flags = 1};
  for (std::size_t i = 0; i < 8; ++i) {
    const auto byte = static_cast<std::uint8_t>(n >> (56 - 8 * i));
    trace.trace_id[i] = trace.trace_id[8 + i] = trace.span_id[i] = byte;
  }
  return trace;
}

void record(PrometheusStatLogger& logger, const FinishedRequestStats& request) {
  IterationStats iteration;
  iteration.finished_requests = {request};
  logger.record({.engine_index = 0, .iteration = &iteration});
}

std::unique_ptr<PrometheusStatLogger> logger_with_exemplars(
    const Surroundings& around) {
  StatLoggerOptions options = around.options();
  options.exemplars = true;
  return *PrometheusStatLogger::create(options);
}

std::string open_metrics(const Surroundings& around) {
  return std::string(OpenMetrics().render(*around.registry));
}

// What stands behind the number of a bucket of engine 0.
std::string exemplar(const std::string& page, const std::string& le) {
  const std::string text = bucket(page, std::string(kE2e), le);
  const auto at = text.find(" # ");
  return at == std::string::npos ? "none" : text.substr(at + 3);
}

TEST_CASE("Exemplars: a request's id is a label, whatever is in it",
          "[loggers]") {
  const Surroundings around;
  const auto logger = logger_with_exemplars(around);
  FinishedRequestStats request =
      finished(0.4, *parse_traceparent(kTraceparent));
  request.request_id = "a \"b\" \\ \n\xc3\xa9" + std::string(100, 'c');
  record(*logger, request);
  const std::string shown = exemplar(open_metrics(around), "0.5");
  CHECK(shown ==
        "{trace_id=\"4bf92f3577b34da6a3ce929d0e0e4736\","
        "span_id=\"00f067aa0ba902b7\",request_id=\"a \\\"b\\\" \\\\ ???" +
            std::string(44, 'c') + "\"} 0.4 1700000000.000");
}

TEST_CASE("Exemplars: each bucket shows its newest request, and when it ended",
          "[loggers]") {
  const Surroundings around;
  const auto logger = logger_with_exemplars(around);
  record(*logger, finished(0.4, *parse_traceparent(kTraceparent)));
  around.clock->advance(2.5);
  record(*logger, finished(1.25, numbered(7)));
  CHECK(exemplar(open_metrics(around), "0.5") ==
        "{trace_id=\"4bf92f3577b34da6a3ce929d0e0e4736\","
        "span_id=\"00f067aa0ba902b7\"} 0.4 1700000000.000");
  CHECK(exemplar(open_metrics(around), "1.5") ==
        "{trace_id=\"00000000000000070000000000000007\","
        "span_id=\"0000000000000007\"} 1.25 1700000002.500");
  CHECK(exemplar(open_metrics(around), "1.0") == "none");

  record(*logger, finished(0.5, numbered(8)));  // its bound is inclusive
  record(*logger, finished(1e9, numbered(9)));
  const std::string page = open_metrics(around);
  CHECK(exemplar(page, "0.5").find("0008\"} 0.5 ") != std::string::npos);
  CHECK(exemplar(page, "1.5").find("0007\"} 1.25 ") != std::string::npos);
  CHECK(exemplar(page, "+Inf").find("0009\"} 1e+09 ") != std::string::npos);
  CHECK(bucket(page, std::string(kE2e), "1.0") == "2.0");
}

TEST_CASE("Exemplars: when the clock shows nonsense, they have no time",
          "[loggers]") {
  const Surroundings around;
  const auto logger = logger_with_exemplars(around);
  around.clock->advance(GENERATE(-1e10, -1.7e9, std::nan(""), 1e300));
  record(*logger, finished(0.4, numbered(7)));
  CHECK(exemplar(open_metrics(around), "0.5") ==
        "{trace_id=\"00000000000000070000000000000007\","
        "span_id=\"0000000000000007\"} 0.4");
}

TEST_CASE(
    "Exemplars: all latencies of a request have them, and the library's own "
    "parser reads them",
    "[loggers]") {
  const Surroundings around;
  StatLoggerOptions options = around.options();
  options.exemplars = true;
  if (GENERATE(false, true)) options.native_latency_histograms.emplace();
  const auto logger = *PrometheusStatLogger::create(options);
  record(*logger, finished(0.25, numbered(5)));
  const std::string text = open_metrics(around);
  const auto page = parse_page(text);
  REQUIRE(page.ok());
  std::set<std::string> found;
  for (const PageFamily& family : page->families) {
    for (const PageSeries& series : family.series) {
      for (const PageBucket& bucket : series.buckets) {
        if (bucket.exemplar == nullptr) continue;
        CHECK(found.insert(std::string(family.name)).second);
        CHECK(bucket.bound >= 0.25);
        CHECK(bucket.exemplar->value == 0.25);
        CHECK(bucket.exemplar->timestamp == 1.7e9);
        REQUIRE(bucket.exemplar->labels.size() == 2);
        CHECK(bucket.exemplar->labels[0] ==
              PageLabel{"span_id", "0000000000000005"});
        CHECK(bucket.exemplar->labels[1] ==
              PageLabel{"trace_id", "00000000000000050000000000000005"});
      }
    }
  }
  CHECK(found == std::set<std::string>{
                     std::string(kE2e), "vllm:request_decode_time_seconds",
                     "vllm:request_inference_time_seconds",
                     "vllm:request_prefill_time_seconds",
                     "vllm:request_queue_time_seconds",
                     "vllm:request_time_per_output_token_seconds",
                     "vllm:time_to_first_token_seconds"});
}

TEST_CASE(
    "Exemplars: none of a request without a sampled trace, nor of what no "
    "histogram counts",
    "[loggers]") {
  const Surroundings around;
  const auto logger = logger_with_exemplars(around);
  TraceContext unsampled = numbered(3);
  unsampled.flags = 0;
  TraceContext no_span = numbered(3);
  no_span.span_id = {};
  record(*logger, finished(0.25, {}));
  record(*logger, finished(0.25, unsampled));
  record(*logger, finished(0.25, no_span));
  record(*logger, finished(std::nan(""), numbered(3)));
  record(*logger, finished(-HUGE_VAL, numbered(3)));
  FinishedRequestStats unknown = finished(0.25, numbered(3));
  unknown.e2e_latency = std::nan("");
  unknown.first_token_latency = unknown.queued_time = unknown.prefill_time =
      unknown.inference_time = unknown.decode_time = std::nullopt;
  unknown.mean_time_per_output_token = std::nan("");
  record(*logger, unknown);
  CHECK(open_metrics(around).find(" # {") == std::string::npos);

  record(*logger, finished(-3.0, numbered(4)));  // counted as 0
  CHECK(exemplar(open_metrics(around), "0.3").find("\"} 0.0 ") !=
        std::string::npos);
}

TEST_CASE("Exemplars: are off by default; on, they change no byte of the rest",
          "[loggers]") {
  const Surroundings with;
  const Surroundings without;
  const auto on = logger_with_exemplars(with);
  const auto off = *PrometheusStatLogger::create(without.options());
  CHECK(open_metrics(with) == open_metrics(without));
  for (std::uint64_t i = 1; i < 100; ++i) {
    const auto request = finished(0.07 * static_cast<double>(i), numbered(i));
    record(*on, request);
    record(*off, request);
  }
  CHECK(open_metrics(without).find(" # {") == std::string::npos);
  CHECK(with.page() == without.page());
  std::string stripped = open_metrics(with);
  for (auto at = stripped.find(" # {"); at != std::string::npos;
       at = stripped.find(" # {"))
    stripped.erase(at, stripped.find('\n', at) - at);
  CHECK(stripped == open_metrics(without));
}

TEST_CASE("Exemplars: neither a step nor a page of them allocates",
          "[loggers]") {
  const Surroundings around;
  const auto logger = logger_with_exemplars(around);
  IterationStats iteration;
  OpenMetrics format;
  format.render(*around.registry);
  iteration.finished_requests = {finished(0.1, numbered(1)),
                                 finished(9.0, numbered(2))};
  CHECK(allocations_of([&] {
          for (int i = 0; i < 100; ++i) {
            logger->record({.engine_index = 0, .iteration = &iteration});
            format.render(*around.registry);
          }
        }) == 0);
}

TEST_CASE("Exemplars: a scrape sees whole ones, of requests that it counts",
          "[loggers][concurrent]") {
  const Surroundings around;
  const auto logger = logger_with_exemplars(around);
  std::atomic<bool> done = false;
  std::thread engine([&] {
    for (std::uint64_t i = 1; i <= 20'000; ++i)
      record(*logger, finished(0.001 * static_cast<double>(i), numbered(i)));
    done = true;
  });
  Snapshot snapshot;
  std::uint64_t seen = 0;
  std::uint64_t wrong = 0;
  for (bool last = false; !last;) {
    last = done;
    around.registry->snapshot(snapshot);
    for (const SchemaFamily& family : snapshot.schema->families) {
      for (const Series& series : family.series) {
        std::uint64_t newest = 0;
        std::uint64_t count = 0;
        for (std::uint32_t i = 0; i < series.exemplars; ++i) {
          const Exemplar it = snapshot.exemplar(series, i);
          const std::uint64_t in_bucket = snapshot.buckets(series)[i];
          count += in_bucket;
          if (!it.valid()) continue;
          ++seen;
          const std::uint64_t n = it.span_id;
          newest = std::max(newest, n);
          wrong += it.trace_id[0] != n || it.trace_id[1] != n ||
                           it.value != 0.001 * static_cast<double>(n)
                       ? 1U
                       : 0U;
          wrong += series.bounds->bucket_of(it.value) != i ? 1U : 0U;
        }
        // TTFT, which is counted when it is known, counts none here.
        if (count != 0 && newest != count && series.exemplars != 0) ++wrong;
      }
    }
  }
  engine.join();
  CHECK(wrong == 0);
  CHECK(seen > 0);
}

}  // namespace
}  // namespace vllm_metrics
