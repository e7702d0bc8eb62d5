#include "src/otlp/metrics_push.h"

#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <new>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/loggers/surroundings.h"
#include "tests/otlp/push_bench.h"
#include "tests/otlp/received.h"
#include "vllm_metrics/registry/series_store.h"

namespace vllm_metrics::otlp {
namespace {

const Response kOutage{.status = 0, .error = "no connection"};
const Response kLostAnswer{.may_have_arrived = true, .error = "timed out"};

TEST_CASE("MetricsPush: delta points follow each other without a gap",
          "[otlp]") {
  PushBench bench(Temporality::kDelta);
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
  PushBench bench(Temporality::kDelta);
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
  PushBench bench(Temporality::kDelta);
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

  const auto lost = [&] {
    return testing::value(
        std::string(TextFormat().render(*bench.registry)),
        "vllm_metrics_otlp_lost_items_total{reason=\"not_delivered\","
        "signal=\"metrics\"}");
  };
  SECTION("until it is refused for what it is: then nobody gets it twice") {
    (*tokens)->inc(10);
    SECTION("in a later export") {
      bench.transport->answers.assign(30, kLostAnswer);
      CHECK_FALSE(bench.run());
      bench.transport->answers = {{.status = 400}};
    }
    SECTION("in the same export") {
      bench.transport->answers = {kLostAnswer, {.status = 400}};
      CHECK_FALSE(bench.run());
    }
    const auto given_up = bench.point("tokens_total");
    (*tokens)->inc(1);
    REQUIRE(bench.run());
    CHECK(bench.point("tokens_total").integer == 1);
    CHECK(bench.point("tokens_total").start == given_up.time);
    CHECK(lost() != "0.0");
  }
  SECTION("whatever is said meanwhile of the right, the path or the server") {
    const int status = GENERATE(401, 404, 500);
    (*tokens)->inc(8);
    bench.transport->answers = {kLostAnswer, {.status = status}};
    CHECK_FALSE(bench.run());
    const std::string once = bench.transport->bodies.back();
    bench.transport->answers = {{.status = status}};
    CHECK_FALSE(bench.run());
    CHECK(bench.transport->bodies.back() == once);
    (*tokens)->inc(8);
    const std::size_t told = bench.transport->bodies.size();
    REQUIRE(bench.run());
    REQUIRE(bench.transport->bodies.size() == told + 2);
    CHECK(bench.transport->bodies[told] == once);
    CHECK(bench.point("tokens_total").integer == 8);
    CHECK(lost() == "0.0");
  }
}

TEST_CASE("MetricsPush: a cumulative series starts where it was registered",
          "[otlp]") {
  PushBench bench;
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
  PushBench bench(temporality);
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

// What processes share: a counter without a time of creation.
class Shared final : public SeriesStore {
 public:
  // The exporter's own, which its page does not show.
  absl::StatusOr<Place> claim(const Request&) override {
    struct alignas(64) Line {
      std::uint64_t words[8] = {};
    };
    return Place{.memory = std::make_shared<std::array<Line, 16>>()};
  }
  void snapshot(Snapshot& out) const override {
    if (!has_memory) throw std::bad_alloc();
    auto schema = std::make_shared<Schema>();
    schema->families = {{{.name = "tokens", .kind = MetricKind::kCounter},
                         {Series{.labels = {{"engine", "0"}}}}}};
    if (more) schema->families[0].series.push_back(Series{.offset = 1});
    schema->word_count = 2;
    schema->since = since;
    out.schema = std::move(schema);
    out.words = {tokens, tokens};
  }
  double since = 1.6e9;
  std::uint64_t tokens = 100;
  bool has_memory = true;
  bool more = false;
};

TEST_CASE("MetricsPush: what processes share starts with the first of them",
          "[otlp]") {
  const auto store = std::make_shared<Shared>();
  const auto exporter_start =
      static_cast<std::uint64_t>(1'700'000'000) * kSecond;

  SECTION("cumulative, however often the exporter begins") {
    store->since = GENERATE(1.6e9, 0.0);
    PushBench bench(Registry::create(store));
    auto own = bench.registry->add(
        {{{.name = "own", .kind = MetricKind::kCounter}, {Series{}}}},
        std::make_shared<Restarting>(), 1);
    REQUIRE(own.ok());
    bench.run();
    CHECK(bench.point("tokens_total").integer == 100);
    CHECK(bench.point("tokens_total").start ==
          (store->since > 0.0 ? 1'600'000'000 * kSecond : exporter_start));
    CHECK(bench.point("own_total").start > 1'600'000'000 * kSecond);
    // One that ended uncleanly took counts away with it.
    store->tokens = 40;
    bench.run();
    CHECK(bench.point("tokens_total").integer == 40);
    CHECK(bench.point("tokens_total").start == exporter_start);
  }
  SECTION("deltas begin with the exporter, so that nothing is told twice") {
    PushBench bench(Registry::create(store), Temporality::kDelta);
    store->tokens = 107;
    bench.run();
    CHECK(bench.point("tokens_total").integer == 7);
    CHECK(bench.point("tokens_total").start == exporter_start);
    // A series that came since is told as a whole.
    store->more = true;
    bench.run();
    const auto points = bench.last().metrics.at("tokens_total").points;
    REQUIRE(points.size() == 2);
    CHECK(points[0].integer == 0);
    CHECK(points[1].integer == 107);
  }
}

TEST_CASE("MetricsPush: without memory an export fails, and the next does not",
          "[otlp]") {
  const auto temporality =
      GENERATE(Temporality::kCumulative, Temporality::kDelta);
  const auto store = std::make_shared<Shared>();
  PushBench bench(Registry::create(store), temporality);
  store->has_memory = false;
  CHECK_FALSE(bench.run());
  REQUIRE(bench.log->lines.size() == 1);
  CHECK(bench.log->lines[0].find("failed: no memory") != std::string::npos);
  CHECK(bench.transport->bodies.empty());
  store->has_memory = true;
  CHECK(bench.run());
}

TEST_CASE("MetricsPush: series that come and go disturb no other", "[otlp]") {
  PushBench bench(Temporality::kDelta);
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
  PushBench bench(Temporality::kDelta);
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
    switch (random() % 5) {
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
      case 3:
        answers = {{.status = 500}};
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

TEST_CASE("MetricsPush: how exports end is on the page", "[otlp]") {
  PushBench bench;
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
