#include "src/otlp/metrics_message.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tests/otlp/push_bench.h"
#include "tests/otlp/received.h"
#include "vllm_metrics/catalogue/catalogue.h"
#include "vllm_metrics/catalogue/otlp_names.h"
#include "vllm_metrics/stats/request_id.h"

namespace vllm_metrics::otlp {
namespace {

TEST_CASE(
    "metrics message: each kind of metric is OTLP's, with the page's names",
    "[otlp]") {
  PushBench bench;
  auto tokens = bench.registry->add_counter({.name = "tokens",
                                             .help = "Tokens.",
                                             .kind = MetricKind::kCounter,
                                             .unit = "tokens"},
                                            {{"engine", "0"}});
  auto seconds = bench.registry->add_counter({.name = "busy_seconds",
                                              .kind = MetricKind::kCounter,
                                              .number = CounterNumber::kInteger,
                                              .unit = "seconds"});
  auto usage = bench.registry->add_gauge({.name = "usage"});
  auto latency = bench.registry->add_histogram({.name = "latency_seconds",
                                                .kind = MetricKind::kHistogram,
                                                .unit = "seconds"},
                                               std::vector<double>{0.1, 1.0});
  REQUIRE((tokens.ok() && seconds.ok() && usage.ok() && latency.ok()));
  (*tokens)->inc(7);
  (*usage)->set(0.25);
  (*latency)->observe(0.1);
  (*latency)->observe(0.5);
  (*latency)->observe(3.0);
  REQUIRE(bench.run());

  const testing::Received received = bench.last();
  CHECK(received.resource.at("service.name") == "engine");
  const auto& sum = received.metrics.at("tokens_total");
  CHECK(sum.kind == "sum");
  CHECK(sum.monotonic);
  CHECK(sum.temporality == 2);
  CHECK(sum.unit == "{tokens}");
  CHECK(sum.points.at(0).is_integer);
  CHECK(sum.points.at(0).integer == 7);
  CHECK(sum.points.at(0).attributes.at("engine") == "0");
  CHECK(sum.points.at(0).time == 1'700'000'000 * kSecond);
  CHECK(received.metrics.at("busy_seconds_total").unit == "s");
  CHECK(received.metrics.at("usage").kind == "gauge");
  CHECK(received.metrics.at("usage").points.at(0).real == 0.25);
  const auto& histogram = received.metrics.at("latency_seconds");
  CHECK(histogram.kind == "histogram");
  CHECK(histogram.points.at(0).buckets == std::vector<std::uint64_t>{1, 1, 1});
  CHECK(histogram.points.at(0).bounds == std::vector<double>{0.1, 1.0});
  CHECK(histogram.points.at(0).count == 3);
  CHECK(histogram.points.at(0).sum == 3.6);
}

TEST_CASE("metrics message: an integer beyond OTLP's is the nearest double",
          "[otlp]") {
  PushBench bench;
  auto tokens = bench.registry->add_counter(
      {.name = "tokens", .kind = MetricKind::kCounter});
  constexpr std::uint64_t kMost = (std::uint64_t{1} << 63) - 1;
  (*tokens)->inc(kMost);
  bench.run();
  CHECK(bench.point("tokens_total").integer ==
        static_cast<std::int64_t>(kMost));
  (*tokens)->inc(1);
  bench.run();
  CHECK_FALSE(bench.point("tokens_total").is_integer);
  CHECK(bench.point("tokens_total").real == 0x1p63);
}

// A histogram with native buckets, as a bank's.
class NativeSource final : public SnapshotSource {
 public:
  static constexpr std::uint32_t kBuckets = 132;
  void read(std::span<std::uint64_t> out) const noexcept override {
    std::ranges::copy(words, out.begin());
  }
  std::vector<std::uint64_t> words =
      std::vector<std::uint64_t>(3 + native_word_count(kBuckets));

  // At schema 0 bucket i ends at 2^i.
  void set(std::int64_t first, std::vector<std::uint64_t> counts,
           std::int64_t schema = 0) {
    std::ranges::fill(words, 0);
    words[0] = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
    words[3] = std::bit_cast<std::uint64_t>(schema);
    words[4] = std::bit_cast<std::uint64_t>(first);
    words[5] = std::bit_cast<std::uint64_t>(0x1p-10);
    std::ranges::copy(counts, words.begin() + 7);
  }
};

TEST_CASE(
    "metrics message: native buckets are exponential ones, one index lower",
    "[otlp]") {
  const auto temporality =
      GENERATE(Temporality::kCumulative, Temporality::kDelta);
  const auto source = std::make_shared<NativeSource>();
  const auto bounds = std::make_shared<const BucketBounds>(
      *BucketBounds::create(std::vector<double>{1e9}));
  PushBench bench(temporality);
  Series series{.bounds = bounds, .native_buckets = NativeSource::kBuckets};
  auto added = bench.registry->add(
      {{{.name = "latency", .kind = MetricKind::kHistogram}, {series}}}, source,
      source->words.size());
  REQUIRE(added.ok());
  source->set(2, {0, 3, 0, 1, 0}, 1);
  bench.run();
  CHECK(bench.last().metrics.at("latency").kind == "exponential");
  const auto point = bench.point("latency");
  CHECK(point.count == 4);
  CHECK(point.scale == 1);
  CHECK(point.offset == 2);  // Prometheus's bucket 3
  CHECK(point.buckets == std::vector<std::uint64_t>{3, 0, 1});
  CHECK(point.zero_threshold == 0x1p-10);

  // The schema falls by one: buckets 3 and 5 become 2 and 3.
  source->set(2, {4, 1}, 0);
  bench.run();
  const auto next = bench.point("latency");
  CHECK(next.scale == 0);
  if (temporality == Temporality::kDelta) {
    CHECK(next.count == 1);
    CHECK(next.offset == 1);
    CHECK(next.buckets == std::vector<std::uint64_t>{1});
  } else {
    CHECK(next.count == 5);
    CHECK(next.buckets == std::vector<std::uint64_t>{4, 1});
  }
}

TEST_CASE("metrics message: exemplars are told; of a delta, those that are new",
          "[otlp]") {
  const auto temporality =
      GENERATE(Temporality::kCumulative, Temporality::kDelta);
  // A word for each of two buckets, the sum, and two exemplars.
  class Source final : public SnapshotSource {
   public:
    void read(std::span<std::uint64_t> out) const noexcept override {
      std::ranges::copy(words, out.begin());
    }
    void set(std::size_t bucket, const Exemplar& exemplar) {
      ++words[bucket];
      std::ranges::copy(words_of(exemplar),
                        words.begin() + static_cast<std::ptrdiff_t>(
                                            3 + kExemplarWords * bucket));
    }
    std::vector<std::uint64_t> words =
        std::vector<std::uint64_t>(3 + 2 * kExemplarWords);
  };
  const auto source = std::make_shared<Source>();
  PushBench bench(temporality);
  const Series series{.bounds = std::make_shared<const BucketBounds>(
                          *BucketBounds::create(std::vector<double>{1.0})),
                      .exemplars = 2};
  auto added = bench.registry->add(
      {{{.name = "latency", .kind = MetricKind::kHistogram}, {series}}}, source,
      source->words.size());
  REQUIRE(added.ok());
  bench.run();
  CHECK(bench.point("latency").exemplars.empty());

  source->set(1, {.trace_id = {0x0102030405060708, 0x090a0b0c0d0e0f10},
                  .span_id = 0x1112131415161718,
                  .value = 2.5,
                  .timestamp = 1.7e9 + 0.25,
                  .request_id = RequestId("cmpl-\"7\"").bytes()});
  bench.run();
  REQUIRE(bench.point("latency").exemplars.size() == 1);
  const auto first = bench.point("latency").exemplars.at(0);
  CHECK(first.trace_id == "\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20");
  CHECK(first.span_id == "\21\22\23\24\25\26\27\30");
  CHECK(first.value == 2.5);
  CHECK(first.attributes ==
        std::map<std::string, std::string>{{"request_id", "cmpl-\"7\""}});
  CHECK(first.time == 1'700'000'000 * kSecond + kSecond / 4);

  source->set(0, {.trace_id = {0, 1}, .value = 0.5, .timestamp = 1.7e9});
  bench.transport->answers.assign(30, {.error = "no connection"});
  bench.run();
  bench.transport->answers.clear();
  // Another series makes another schema.
  auto other = bench.registry->add_gauge({.name = "a"});
  bench.run();
  const auto exemplars = bench.point("latency").exemplars;
  if (temporality == Temporality::kDelta) {
    REQUIRE(exemplars.size() == 1);
    CHECK(exemplars[0].trace_id == std::string(15, '\0') + '\1');
    CHECK(exemplars[0].span_id.empty());
    CHECK(exemplars[0].attributes.empty());
  } else {
    CHECK(exemplars.size() == 2);
  }
}

TEST_CASE(
    "metrics message: the conventions' metrics are histograms of the page",
    "[otlp]") {
  const auto temporality =
      GENERATE(Temporality::kCumulative, Temporality::kDelta);
  Settings settings;
  settings.gen_ai = GenAiMetrics{.provider = "p", .operation = "chat"};
  PushBench bench(temporality, true, settings);
  const auto add = [&](MetricId id, std::vector<double> bounds) {
    auto made =
        bench.registry->add_histogram(family_of(spec_of(id)), std::move(bounds),
                                      {{"engine", "3"}, {"model_name", "m"}});
    REQUIRE(made.ok());
    return *std::move(made);
  };
  const auto& advised = gen_ai_metrics()[1];
  REQUIRE(advised.name == "gen_ai.server.time_to_first_token");
  // A bound before, between and behind the advised ones.
  std::vector<double> finer{0.0005, 0.3, 20.0};
  finer.insert(finer.end(), advised.buckets.begin(), advised.buckets.end());
  std::ranges::sort(finer);
  const auto first = add(MetricId::kTimeToFirstToken, finer);
  const auto prompt = add(MetricId::kRequestPromptTokens, {10.0, 100.0});
  const auto answer = add(MetricId::kRequestGenerationTokens, {10.0, 100.0});
  bench.run();
  for (const double value : {0.0001, 0.001, 0.26, 0.4, 10.0, 15.0, 30.0})
    first->observe(value);
  prompt->observe(50.0);
  answer->observe(7.0);
  bench.run();

  const auto received = bench.last();
  CHECK(received.metrics.count("gen_ai.server.request.duration") == 0);
  const auto& metric = received.metrics.at(std::string(advised.name));
  CHECK(metric.kind == "histogram");
  CHECK(metric.unit == "s");
  CHECK(metric.temporality == (temporality == Temporality::kDelta ? 1 : 2));
  const auto& point = metric.points.at(0);
  CHECK(point.attributes ==
        std::map<std::string, std::string>{{"gen_ai.operation.name", "chat"},
                                           {"gen_ai.provider.name", "p"},
                                           {"gen_ai.request.model", "m"},
                                           {"gen_ai.response.model", "m"},
                                           {"vllm_metrics.engine", "3"}});
  CHECK(point.bounds ==
        std::vector<double>(advised.buckets.begin(), advised.buckets.end()));
  // Up to 0.001, 0.5 and 10, and above.
  CHECK(point.buckets == std::vector<std::uint64_t>{2, 0, 0, 0, 0, 0, 0, 0, 0,
                                                    2, 0, 0, 0, 0, 0, 1, 2});
  CHECK(point.count == 7);
  const auto& page = received.metrics.at("vllm:time_to_first_token_seconds");
  CHECK(point.sum == page.points.at(0).sum);
  CHECK(point.start == page.points.at(0).start);

  const auto& tokens = received.metrics.at("gen_ai.client.token.usage");
  CHECK(tokens.unit == "{token}");
  REQUIRE(tokens.points.size() == 2);
  CHECK(tokens.points[0].attributes.at("gen_ai.token.type") == "input");
  CHECK(tokens.points[0].sum == 50.0);
  CHECK(tokens.points[1].attributes.at("gen_ai.token.type") == "output");
  CHECK(tokens.points[1].sum == 7.0);
  // Its bounds cannot be made of these.
  CHECK(tokens.points[0].bounds == std::vector<double>{10.0, 100.0});
  CHECK(tokens.points[0].buckets == std::vector<std::uint64_t>{0, 1, 0});
}

}  // namespace
}  // namespace vllm_metrics::otlp
