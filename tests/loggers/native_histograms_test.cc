#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/allocation_counter.h"
#include "tests/loggers/surroundings.h"
#include "vllm_metrics/catalogue/catalogue.h"
#include "vllm_metrics/loggers/prometheus_stat_logger.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"
#include "vllm_metrics/registry/native_histogram.h"

namespace vllm_metrics {
namespace {

using namespace vllm_metrics::testing;

constexpr std::string_view kItl = "vllm:inter_token_latency_seconds";
constexpr std::string_view kE2e = "vllm:e2e_request_latency_seconds";

const Series& series_of(const Snapshot& snapshot, std::string_view family,
                        std::size_t engine = 0) {
  const auto found = std::ranges::find(
      snapshot.schema->families, family,
      [](const SchemaFamily& f) -> std::string_view { return f.family.name; });
  REQUIRE(found != snapshot.schema->families.end());
  return found->series[engine];
}

std::uint64_t count(const NativeView& view) {
  return std::accumulate(view.counts.begin(), view.counts.end(),
                         view.zero_count);
}

TEST_CASE(
    "Native histograms: are off unless asked for, by family or for all "
    "latencies",
    "[loggers]") {
  const Surroundings around;
  StatLoggerOptions options = around.options();
  std::set<std::string> expected;
  SECTION("off") {}
  SECTION("one family") {
    options.native_histograms = {
        {.family = "vllm:iteration_tokens_total", .options = {}}};
    expected = {"vllm:iteration_tokens_total"};
  }
  SECTION("all latencies") {
    options.native_latency_histograms.emplace();
    for (const MetricSpec& spec : catalogue()) {
      if (spec.unit == "seconds" && spec.kind == MetricKind::kHistogram &&
          spec.condition == Condition::kAlways && spec.scope == Scope::kEngine)
        expected.insert(std::string(spec.name));
    }
    CHECK(expected.size() == 8);
  }
  const auto logger = *PrometheusStatLogger::create(options);
  Snapshot snapshot;
  around.registry->snapshot(snapshot);
  std::set<std::string> found;
  for (const SchemaFamily& family : snapshot.schema->families) {
    for (const Series& series : family.series) {
      if (series.native_buckets == 0) continue;
      const NativeView view = snapshot.native(series);
      found.insert(family.family.name);
      CHECK(series.native_buckets == 160);
      CHECK(view.schema == 3);
      CHECK(view.zero_threshold == 0x1p-128);
      CHECK(count(view) == 0);
    }
  }
  CHECK(found == expected);
}

TEST_CASE(
    "Native histograms: count what the classic buckets count, also what "
    "is odd",
    "[loggers]") {
  const Surroundings around;
  StatLoggerOptions options = around.options();
  options.engine_indexes = {0, 1};
  options.native_latency_histograms = NativeHistogramOptions{.schema = 5};
  options.native_histograms = {
      {.family = std::string(kItl),
       .options = {.schema = 2, .max_buckets = 132, .zero_threshold = 1e-3}}};
  const auto logger = *PrometheusStatLogger::create(options);

  IterationStats iteration;
  for (int i = 0; i < 300; ++i)
    iteration.inter_token_latencies_iter.push_back(0.01 + 1e-4 * i);
  iteration.inter_token_latencies_iter.push_back(-1.0);
  iteration.inter_token_latencies_iter.push_back(std::nan(""));
  iteration.inter_token_latencies_iter.push_back(1e-3);
  iteration.finished_requests = {{.e2e_latency = 3.0}, {.e2e_latency = -3.0}};
  logger->record({.engine_index = 1, .iteration = &iteration});

  Snapshot snapshot;
  around.registry->snapshot(snapshot);
  for (const std::string_view family : {kItl, kE2e}) {
    CHECK(count(snapshot.native(series_of(snapshot, family))) == 0);
    const Series& series = series_of(snapshot, family, 1);
    const auto classic = snapshot.buckets(series);
    CHECK(count(snapshot.native(series)) ==
          std::accumulate(classic.begin(), classic.end(), std::uint64_t{0}));
  }
  const NativeView itl = snapshot.native(series_of(snapshot, kItl, 1));
  CHECK(itl.schema == 2);
  CHECK(itl.zero_count == 2);
  CHECK(count(itl) == 302);
  const NativeQuantile median = native_quantile(itl, 0.5);
  CHECK(median.lower < 0.0249);
  CHECK(median.upper >= 0.0249);
  const NativeView e2e = snapshot.native(series_of(snapshot, kE2e, 1));
  CHECK(e2e.schema == 5);
  CHECK(e2e.zero_count == 1);
  CHECK(native_quantile(e2e, 1.0).upper >= 3.0);
  CHECK(native_quantile(e2e, 1.0).lower < 3.0);
}

TEST_CASE("Native histograms: a metric of the engine's own can have one",
          "[loggers]") {
  const Surroundings around;
  StatLoggerOptions options = around.options();
  options.step_metrics.metrics = {
      {.family = {.name = "attention_seconds",
                  .help = "Attention.",
                  .kind = MetricKind::kHistogram},
       .buckets = {0.1, 1.0},
       .native = NativeHistogramOptions{.schema = 8, .max_buckets = 1000}}};
  options.step_metrics.write = [](const StepRecord&, StepWriter& writer) {
    writer.observe(0, 0.125);
  };
  const auto logger = *PrometheusStatLogger::create(options);
  logger->record({.engine_index = 0});
  Snapshot snapshot;
  around.registry->snapshot(snapshot);
  const NativeView view =
      snapshot.native(series_of(snapshot, "attention_seconds"));
  CHECK(view.schema == 8);
  CHECK(native_quantile(view, 1.0).upper == 0.125);
}

TEST_CASE("Native histograms: options that are not allowed are refused",
          "[loggers]") {
  const Surroundings around;
  StatLoggerOptions options = around.options();
  std::string expected;
  const std::string family(kE2e);
  const std::string first_latency = "vllm:time_to_first_token_seconds";
  SECTION("family") {
    options.native_histograms = {{.family = "vllm:num_requests_running"}};
    expected =
        "native_histograms[0].family = \"vllm:num_requests_running\" is not a "
        "histogram of the catalogue; allowed: e.g. \"" +
        family + "\"";
  }
  SECTION("not of an engine") {
    options.native_histograms = {
        {.family = "vllm:sleep_mode_operation_duration_seconds"}};
    expected =
        "native_histograms[0].family = "
        "\"vllm:sleep_mode_operation_duration_seconds\" is not of an engine; "
        "allowed: e.g. \"" +
        family + "\"";
  }
  SECTION("twice") {
    options.native_histograms = {{.family = family}, {.family = family}};
    expected = "native_histograms[1].family = \"" + family +
               "\" is also native_histograms[0].family";
  }
  SECTION("schema") {
    options.native_histograms = {{.family = family, .options = {.schema = 9}}};
    expected = "family " + family + ": native schema = 9; allowed: -4 to 8";
  }
  SECTION("buckets") {
    options.native_latency_histograms =
        NativeHistogramOptions{.max_buckets = 131};
    expected = "family " + first_latency +
               ": native max_buckets = 131; allowed: 132 to 4096";
  }
  SECTION("threshold") {
    options.native_latency_histograms =
        NativeHistogramOptions{.zero_threshold = std::nan("")};
    expected = "family " + first_latency +
               ": native zero_threshold = nan; allowed: 0 to 1";
  }
  SECTION("a gauge") {
    options.step_metrics.metrics = {
        {.family = {.name = "depth", .help = "Depth."},
         .native = NativeHistogramOptions{}}};
    options.step_metrics.write = [](const StepRecord&, StepWriter&) {};
    expected = "family depth: native; allowed: histograms";
  }
  CHECK(StatLoggerManager::create(options).status().message() == expected);
}

TEST_CASE(
    "Native histograms: a step allocates nothing, also when the window "
    "moves and the resolution falls",
    "[loggers]") {
  const Surroundings around;
  StatLoggerOptions options = around.options();
  options.native_latency_histograms.emplace();
  const auto manager = *StatLoggerManager::create(options);
  IterationStats iteration;
  iteration.inter_token_latencies_iter.assign(256, 0.02);
  const auto step = [&](int i) {
    const auto at = static_cast<std::size_t>(i % 256);
    iteration.inter_token_latencies_iter[at] = std::ldexp(1.1, i % 400 - 200);
    manager->record(nullptr, &iteration);
  };
  step(0);
  CHECK(allocations_of([&] {
          for (int i = 0; i < 1000; ++i) step(i);
        }) == 0);
}

TEST_CASE(
    "Native histograms: a scrape sees native and classic buckets of one "
    "step, also while the window moves",
    "[loggers][concurrent]") {
  const Surroundings around;
  StatLoggerOptions options = around.options();
  options.native_latency_histograms.emplace();
  const auto manager = *StatLoggerManager::create(options);
  std::thread engine([&] {
    IterationStats iteration;
    for (int i = 0; i < 3000; ++i) {
      iteration.inter_token_latencies_iter.assign(
          static_cast<std::size_t>(i % 40 + 1), std::ldexp(1.1, i % 400 - 200));
      iteration.inter_token_latencies_iter.push_back(0.02);
      manager->record(nullptr, &iteration);
    }
  });
  Snapshot snapshot;
  std::uint64_t last = 0;
  for (int i = 0; i < 1000; ++i) {
    around.registry->snapshot(snapshot);
    const Series& series = series_of(snapshot, kItl);
    const auto classic = snapshot.buckets(series);
    const auto all =
        std::accumulate(classic.begin(), classic.end(), std::uint64_t{0});
    REQUIRE(count(snapshot.native(series)) == all);
    REQUIRE(all >= last);
    last = all;
  }
  engine.join();
}

}  // namespace
}  // namespace vllm_metrics
