#include "src/otlp/metrics_push.h"

#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/loggers/surroundings.h"
#include "tests/otlp/received.h"

namespace vllm_metrics::otlp {
namespace {

using testing::ManualClock;
using testing::Received;
using testing::ScriptedTransport;

constexpr std::uint64_t kSecond = 1'000'000'000;
const Response kOutage{.status = 0, .error = "no connection"};
const Response kLostAnswer{.may_have_arrived = true, .error = "timed out"};

// A registry, its push and the collector.
struct Bench {
  explicit Bench(Temporality temporality = Temporality::kCumulative,
                 bool exponential = true) {
    Settings settings;
    settings.url = "http://c/v1/metrics";
    settings.resource = {{"service.name", "engine"}};
    settings.temporality = temporality;
    auto metrics = ExporterMetrics::create(*registry, Signal::kMetrics, log);
    REQUIRE(metrics.ok());
    Delivery delivery(settings, transport, clock, [this](double seconds) {
      clock->advance(seconds);
      return true;
    });
    push =
        std::make_unique<MetricsPush>(registry, settings, exponential, clock,
                                      std::move(delivery), *std::move(metrics));
  }
  bool run() {
    const bool taken = push->run(30.0);
    clock->advance(60.0);
    return taken;
  }
  Received last() const {
    return testing::read_request(transport->bodies.back());
  }
  testing::Point point(const std::string& metric) const {
    const Received received = last();
    REQUIRE(received.metrics.contains(metric));
    return received.metrics.at(metric).points.at(0);
  }

  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  std::shared_ptr<Registry> registry = Registry::create();
  std::shared_ptr<testing::CapturedLog> log =
      std::make_shared<testing::CapturedLog>();
  std::shared_ptr<ScriptedTransport> transport =
      std::make_shared<ScriptedTransport>();
  std::unique_ptr<MetricsPush> push;
};

TEST_CASE("MetricsPush: each kind of metric is OTLP's, with the page's names",
          "[otlp]") {
  Bench bench;
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

  const Received received = bench.last();
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

TEST_CASE("MetricsPush: an integer beyond OTLP's is the nearest double",
          "[otlp]") {
  Bench bench;
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

TEST_CASE("MetricsPush: delta points follow each other without a gap",
          "[otlp]") {
  Bench bench(Temporality::kDelta);
  auto tokens = bench.registry->add_counter(
      {.name = "tokens", .kind = MetricKind::kCounter});
  (*tokens)->inc(5);
  bench.run();
  CHECK(bench.last().metrics.at("tokens_total").temporality == 1);
  const auto first = bench.point("tokens_total");
  CHECK(first.integer == 5);
  (*tokens)->inc(2);
  bench.run();
  const auto second = bench.point("tokens_total");
  CHECK(second.integer == 2);
  CHECK(second.start == first.time);
  CHECK(second.time == first.time + 60 * kSecond);
}

TEST_CASE("MetricsPush: what an outage kept back is in the next delta point",
          "[otlp]") {
  Bench bench(Temporality::kDelta);
  auto tokens = bench.registry->add_counter(
      {.name = "tokens", .kind = MetricKind::kCounter});
  (*tokens)->inc(5);
  REQUIRE(bench.run());
  const auto before = bench.point("tokens_total");
  (*tokens)->inc(2);
  bench.transport->answers.assign(30, kOutage);
  CHECK_FALSE(bench.run());
  bench.transport->answers.clear();
  (*tokens)->inc(4);
  REQUIRE(bench.run());
  CHECK(bench.point("tokens_total").integer == 6);
  CHECK(bench.point("tokens_total").start == before.time);
}

TEST_CASE("MetricsPush: what may have been taken is sent again as it was",
          "[otlp]") {
  Bench bench(Temporality::kDelta);
  auto tokens = bench.registry->add_counter(
      {.name = "tokens", .kind = MetricKind::kCounter});
  (*tokens)->inc(5);
  bench.transport->answers.assign(30, kLostAnswer);
  CHECK_FALSE(bench.run());
  const std::string sent = bench.transport->bodies.front();
  bench.transport->answers.clear();
  (*tokens)->inc(3);
  const std::size_t before = bench.transport->bodies.size();
  REQUIRE(bench.run());
  REQUIRE(bench.transport->bodies.size() == before + 2);
  CHECK(bench.transport->bodies[before] == sent);
  CHECK(bench.point("tokens_total").integer == 3);

  SECTION("until it is refused for good, and then it is part of the next") {
    (*tokens)->inc(10);
    bench.transport->answers.assign(30, kLostAnswer);
    CHECK_FALSE(bench.run());
    bench.transport->answers = {{.status = 400}};
    (*tokens)->inc(1);
    REQUIRE(bench.run());
    CHECK(bench.point("tokens_total").integer == 11);
  }
}

TEST_CASE("MetricsPush: a cumulative series starts where it was registered",
          "[otlp]") {
  Bench bench;
  auto tokens = bench.registry->add_counter(
      {.name = "tokens", .kind = MetricKind::kCounter});
  (*tokens)->inc(1);
  bench.run();
  const auto first = bench.point("tokens_total");
  (*tokens)->inc(1);
  bench.run();
  CHECK(bench.point("tokens_total").start == first.start);
  CHECK(bench.point("tokens_total").integer == 2);
}

// A source whose words fall, as those of a process that began again.
class Restarting final : public SnapshotSource {
 public:
  void read(std::span<std::uint64_t> words) const noexcept override {
    words[0] = value;
  }
  std::uint64_t value = 0;
};

TEST_CASE("MetricsPush: a counter that fell starts anew", "[otlp]") {
  const auto temporality =
      GENERATE(Temporality::kCumulative, Temporality::kDelta);
  Bench bench(temporality);
  const auto source = std::make_shared<Restarting>();
  auto added = bench.registry->add(
      {{{.name = "tokens", .kind = MetricKind::kCounter}, {Series{}}}}, source,
      1);
  REQUIRE(added.ok());
  source->value = 100;
  bench.run();
  const auto before = bench.point("tokens_total");
  source->value = 4;
  bench.run();
  CHECK(bench.point("tokens_total").integer == 4);
  CHECK(bench.point("tokens_total").start == before.time);
}

TEST_CASE("MetricsPush: series that come and go disturb no other", "[otlp]") {
  Bench bench(Temporality::kDelta);
  auto tokens = bench.registry->add_counter(
      {.name = "tokens", .kind = MetricKind::kCounter}, {{"engine", "1"}});
  (*tokens)->inc(5);
  bench.run();
  {
    auto other = bench.registry->add_counter(
        {.name = "tokens", .kind = MetricKind::kCounter}, {{"engine", "0"}});
    (*other)->inc(50);
    (*tokens)->inc(1);
    bench.run();
    std::map<std::string, std::int64_t> deltas;
    const auto last = bench.last();
    for (const auto& point : last.metrics.at("tokens_total").points)
      deltas[point.attributes.at("engine")] = point.integer;
    CHECK(deltas == std::map<std::string, std::int64_t>{{"0", 50}, {"1", 1}});
  }
  (*tokens)->inc(2);
  bench.run();
  CHECK(bench.last().metrics.at("tokens_total").points.size() == 1);
  CHECK(bench.point("tokens_total").integer == 2);
}

// Delta points, put together by a collector that drops what it has.
class Collector {
 public:
  void take(const std::string& body) {
    for (const auto& [name, metric] : testing::read_request(body).metrics) {
      for (const auto& point : metric.points) {
        if (!seen_.insert({name, point.start, point.time}).second) continue;
        integers[name] += point.integer;
        counts[name] += point.count;
      }
    }
  }
  std::map<std::string, std::int64_t> integers;
  std::map<std::string, std::uint64_t> counts;

 private:
  std::set<std::tuple<std::string, std::uint64_t, std::uint64_t>> seen_;
};

TEST_CASE("MetricsPush: delta streams add up whatever gets lost", "[otlp]") {
  Bench bench(Temporality::kDelta);
  auto tokens = bench.registry->add_counter(
      {.name = "tokens", .kind = MetricKind::kCounter});
  auto latency = bench.registry->add_histogram(
      {.name = "latency", .kind = MetricKind::kHistogram},
      std::vector<double>{1.0});
  Collector collector;
  std::minstd_rand random(GENERATE(1U, 2U, 3U));
  bool arrives = true;
  bench.transport->on_send = [&] {
    auto& answers = bench.transport->answers;
    switch (random() % 4) {
      case 0:
        answers = {kOutage};
        arrives = false;
        break;
      case 1:
        answers = {kLostAnswer};
        arrives = random() % 2 == 0;
        break;
      case 2:
        answers = {{.status = 503}};
        arrives = false;
        break;
      default:
        answers = {};
        arrives = true;
    }
    if (arrives) collector.take(bench.transport->bodies.back());
  };
  std::int64_t total = 0;
  for (int i = 0; i < 300; ++i) {
    const auto more = static_cast<std::int64_t>(random() % 100);
    (*tokens)->inc(static_cast<std::uint64_t>(more));
    (*latency)->observe(0.5);
    total += more;
    bench.push->run(2.0);
    bench.clock->advance(10.0);
  }
  bench.transport->on_send = [&] {
    bench.transport->answers.clear();
    collector.take(bench.transport->bodies.back());
  };
  REQUIRE(bench.run());
  CHECK(collector.integers.at("tokens_total") == total);
  CHECK(collector.counts.at("latency") == 300);
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

TEST_CASE("MetricsPush: native buckets are exponential ones, one index lower",
          "[otlp]") {
  const auto temporality =
      GENERATE(Temporality::kCumulative, Temporality::kDelta);
  const auto source = std::make_shared<NativeSource>();
  const auto bounds = std::make_shared<const BucketBounds>(
      *BucketBounds::create(std::vector<double>{1e9}));
  Bench bench(temporality);
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

TEST_CASE("MetricsPush: exemplars are told; of a delta, those that are new",
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
  Bench bench(temporality);
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
                  .timestamp = 1.7e9 + 0.25});
  bench.run();
  REQUIRE(bench.point("latency").exemplars.size() == 1);
  const auto first = bench.point("latency").exemplars.at(0);
  CHECK(first.trace_id == "\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20");
  CHECK(first.span_id == "\21\22\23\24\25\26\27\30");
  CHECK(first.value == 2.5);
  CHECK(first.time == 1'700'000'000 * kSecond + kSecond / 4);

  source->set(0, {.trace_id = {0, 1}, .value = 0.5, .timestamp = 1.7e9});
  bench.transport->answers.assign(30, kOutage);
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
  } else {
    CHECK(exemplars.size() == 2);
  }
}

TEST_CASE("MetricsPush: how exports end is on the page", "[otlp]") {
  Bench bench;
  const auto exports = [&](const std::string& outcome) {
    return testing::value(std::string(TextFormat().render(*bench.registry)),
                          "vllm_metrics_otlp_exports_total{outcome=\"" +
                              outcome + "\",signal=\"metrics\"}");
  };
  CHECK(exports("accepted") == "0.0");
  bench.run();
  bench.transport->answers = {{.status = 400}};
  bench.run();
  bench.transport->answers.assign(30, kLostAnswer);
  bench.run();
  CHECK(exports("accepted") == "1.0");
  CHECK(exports("refused") == "1.0");
  CHECK(exports("unknown") == "1.0");

  bench.transport->answers = {
      {.status = 200, .body = std::string("\x0a\x02\x08\x05", 4)}};
  bench.run();
  CHECK(testing::value(std::string(TextFormat().render(*bench.registry)),
                       "vllm_metrics_otlp_lost_items_total{reason=\"rejected\","
                       "signal=\"metrics\"}") == "5.0");
}

}  // namespace
}  // namespace vllm_metrics::otlp
