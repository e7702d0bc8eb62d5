#include "vllm_metrics/registry/registry.h"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/registry/page_lines.h"

namespace vllm_metrics {
namespace {

using Lines = std::vector<std::string>;

const std::vector<double> kBounds{1, 2};

// Words that are whatever the test puts there.
class Words : public SnapshotSource {
 public:
  explicit Words(std::vector<std::uint64_t> words) : words_(std::move(words)) {}
  void read(std::span<std::uint64_t> words) const noexcept override {
    std::ranges::copy(words_, words.begin());
  }

 private:
  std::vector<std::uint64_t> words_;
};

std::uint64_t bits(double v) { return std::bit_cast<std::uint64_t>(v); }

TEST_CASE("Registry: is empty at first", "[registry]") {
  const auto registry = Registry::create();
  Snapshot snapshot;
  CHECK(snapshot.schema == nullptr);
  registry->snapshot(snapshot);
  REQUIRE(snapshot.schema != nullptr);
  CHECK(snapshot.schema->families.empty());
  CHECK(snapshot.words.empty());
}

TEST_CASE(
    "Registry: a metric is on the page with its value, its labels sorted "
    "by name",
    "[registry]") {
  const auto registry = Registry::create();
  const auto counter = registry->add_counter(
      {.name = "c", .help = "C."}, {{"model_name", "m"}, {"engine", "0"}});
  const auto gauge = registry->add_gauge({.name = "g", .help = "G."});
  const auto histogram = registry->add_histogram({.name = "h", .help = "H."},
                                                 kBounds, {{"a", "x"}});
  REQUIRE(counter.ok());
  REQUIRE(gauge.ok());
  REQUIRE(histogram.ok());
  (*counter)->inc(3);
  (*gauge)->set(-0.5);
  (*histogram)->observe(2.0);
  (*histogram)->observe(3.5);
  CHECK(lines_of(*registry) == Lines{R"(c{engine="0",model_name="m"} 3)",
                                     "g{} -0.5", R"(h{a="x"} 0,1,1 sum 5.5)"});
}

TEST_CASE(
    "Registry: families stand in order of registration, the series of "
    "one together",
    "[registry]") {
  const auto registry = Registry::create();
  const auto z = registry->add_gauge({.name = "z"}, {{"i", "2"}});
  const auto a = registry->add_gauge({.name = "a"});
  const auto z1 = registry->add_gauge({.name = "z"}, {{"i", "1"}});
  CHECK(lines_of(*registry) ==
        Lines{R"(z{i="2"} 0)", R"(z{i="1"} 0)", "a{} 0"});
}

TEST_CASE("Registry: a counter's name with and without _total is one family",
          "[registry]") {
  const auto registry = Registry::create();
  const auto with = registry->add_counter({.name = "x_total"}, {{"i", "1"}});
  const auto without = registry->add_counter({.name = "x"}, {{"i", "2"}});
  REQUIRE(with.ok());
  REQUIRE(without.ok());
  CHECK(lines_of(*registry) == Lines{R"(x{i="1"} 0)", R"(x{i="2"} 0)"});
  CHECK_FALSE(registry->add_counter({.name = "x"}, {{"i", "1"}}).ok());
}

TEST_CASE("Registry: label values and help that are not UTF-8 are made so",
          "[registry]") {
  const auto registry = Registry::create();
  const auto gauge =
      registry->add_gauge({.name = "g", .help = "\xFF"}, {{"a", "b\xC3"}});
  CHECK(lines_of(*registry) == Lines{"g{a=\"b\xEF\xBF\xBD\"} 0"});
  Snapshot snapshot;
  registry->snapshot(snapshot);
  CHECK(snapshot.schema->families[0].family.help == "\xEF\xBF\xBD");
  // What became equal is equal.
  const auto again =
      registry->add_gauge({.name = "g", .help = "\xFE"}, {{"a", "b\xE1"}});
  CHECK(again.status().code() == absl::StatusCode::kAlreadyExists);
}

TEST_CASE("Registry: series are stamped with the time they were registered",
          "[registry]") {
  const auto registry = Registry::create();
  const auto gauge = registry->add_gauge({.name = "g"});
  const auto given = registry->add(
      {{.family = {.name = "t"}, .series = {{.created = 1000.5}}}},
      std::make_shared<Words>(std::vector<std::uint64_t>{0}), 1);
  REQUIRE(given.ok());
  Snapshot snapshot;
  registry->snapshot(snapshot);
  CHECK(snapshot.schema->families[0].series[0].created > 1.5e9);
  CHECK(snapshot.schema->families[1].series[0].created == 1000.5);
}

TEST_CASE("Registry: a series leaves the page with the last copy of its handle",
          "[registry]") {
  const auto registry = Registry::create();
  std::vector<Handle<Gauge>> handles;
  {
    const auto first = registry->add_gauge({.name = "g"});
    REQUIRE(first.ok());
    handles = {*first, *first};
  }
  handles.pop_back();
  handles.front()->set(4.0);
  CHECK(lines_of(*registry) == Lines{"g{} 4"});
  handles.clear();
  CHECK(lines_of(*registry).empty());
}

TEST_CASE("Registry: a moved registration ends once, an assigned one at once",
          "[registry]") {
  const auto registry = Registry::create();
  const auto add = [&](std::string name) {
    return *registry->add(
        {{.family = {.name = std::move(name)}, .series = {{}}}},
        std::make_shared<Words>(std::vector<std::uint64_t>{bits(7)}), 1);
  };
  Registration a = add("a");
  Registration moved = std::move(a);
  CHECK(lines_of(*registry) == Lines{"a{} 7"});
  Registration b = add("b");
  moved = std::move(b);
  CHECK(lines_of(*registry) == Lines{"b{} 7"});
  Registration& same = moved;
  moved = std::move(same);
  CHECK(lines_of(*registry) == Lines{"b{} 7"});
  moved = Registration();
  CHECK(lines_of(*registry).empty());
}

TEST_CASE(
    "Registry: writing to a metric and dropping it is safe after the "
    "registry has gone",
    "[registry]") {
  auto registry = Registry::create();
  auto counter = registry->add_counter({.name = "c"});
  auto histogram = registry->add_histogram({.name = "h"}, kBounds);
  REQUIRE(counter.ok());
  REQUIRE(histogram.ok());
  registry.reset();
  (*counter)->inc(5);
  (*histogram)->observe(1.0);
  CHECK((*counter)->value() == 5);
}

// "Duplicated timeseries" when an engine is built twice in one process.
TEST_CASE(
    "Registry: a series can be registered again once it has gone, and "
    "starts from zero",
    "[registry]") {
  const auto registry = Registry::create();
  const Family family{.name = "vllm:generation_tokens", .help = "Tokens."};
  auto first = registry->add_counter(family, {{"engine", "0"}});
  REQUIRE(first.ok());
  (*first)->inc(30);
  CHECK(registry->add_counter(family, {{"engine", "0"}}).status().code() ==
        absl::StatusCode::kAlreadyExists);
  CHECK(lines_of(*registry) ==
        Lines{R"(vllm:generation_tokens{engine="0"} 30)"});
  first = absl::CancelledError("gone");
  auto second = registry->add_counter(family, {{"engine", "0"}});
  REQUIRE(second.ok());
  (*second)->inc(4);
  CHECK(lines_of(*registry) ==
        Lines{R"(vllm:generation_tokens{engine="0"} 4)"});
}

TEST_CASE("Registry: a name is free for any family once its family has gone",
          "[registry]") {
  const auto registry = Registry::create();
  { const auto histogram = registry->add_histogram({.name = "x"}, kBounds); }
  const auto gauge = registry->add_gauge({.name = "x_count"});
  CHECK(gauge.ok());
  const auto counter = registry->add_counter({.name = "x", .help = "Other."});
  CHECK(counter.ok());
}

TEST_CASE(
    "Registry: info series may differ in label names, and one registered "
    "twice is shown once with its larger value",
    "[registry]") {
  const auto registry = Registry::create();
  const Family info{.name = "vllm:lora_requests_info", .info = true};
  const auto a = registry->add_gauge(info, {{"max_lora", "1"}});
  const auto b = registry->add_gauge(info, {{"running", "x"}, {"w", ""}});
  auto a_again = registry->add_gauge(info, {{"max_lora", "1"}});
  auto a_third = registry->add_gauge(info, {{"max_lora", "1"}});
  REQUIRE(a.ok());
  REQUIRE(b.ok());
  REQUIRE(a_again.ok());
  REQUIRE(a_third.ok());
  (*a)->set(1000.0);
  (*b)->set(1001.0);
  (*a_again)->set(1003.0);
  (*a_third)->set(1002.0);
  const std::string other = R"(vllm:lora_requests_info{running="x",w=""} 1001)";
  CHECK(lines_of(*registry) ==
        Lines{R"(vllm:lora_requests_info{max_lora="1"} 1003)", other});
  a_again = absl::CancelledError("gone");
  CHECK(lines_of(*registry) ==
        Lines{R"(vllm:lora_requests_info{max_lora="1"} 1002)", other});
  a_third = absl::CancelledError("gone");
  CHECK(lines_of(*registry) ==
        Lines{R"(vllm:lora_requests_info{max_lora="1"} 1000)", other});
}

TEST_CASE("Registry: equal label sets of two info families are two series",
          "[registry]") {
  const auto registry = Registry::create();
  const auto a = registry->add_gauge({.name = "ab", .info = true}, {{"c", ""}});
  const auto b = registry->add_gauge({.name = "a", .info = true}, {{"bc", ""}});
  CHECK(lines_of(*registry) == Lines{R"(ab{c=""} 0)", R"(a{bc=""} 0)"});
}

TEST_CASE("Registry: one source fills many families, its words found by offset",
          "[registry]") {
  const auto registry = Registry::create();
  const auto before = registry->add_counter({.name = "before"});
  auto bounds =
      std::make_shared<const BucketBounds>(*BucketBounds::create(kBounds));
  std::vector<SchemaFamily> families{
      {{.name = "h", .kind = MetricKind::kHistogram},
       {{.labels = {{"e", "0"}}, .offset = 2, .bounds = bounds},
        {.labels = {{"e", "1"}}, .offset = 6, .bounds = bounds}}},
      {{.name = "r",
        .kind = MetricKind::kCounter,
        .number = CounterNumber::kReal},
       {{.offset = 1}}},
      {{.name = "g"}, {{.offset = 0}}},
  };
  auto source = std::make_shared<Words>(std::vector<std::uint64_t>{
      bits(-1.5), bits(0.25), 1, 2, 3, bits(9.5), 4, 5, 6, bits(20)});
  auto registration = registry->add(std::move(families), source, 10);
  REQUIRE(registration.ok());
  CHECK(lines_of(*registry) == Lines{"before{} 0", R"(h{e="0"} 1,2,3 sum 9.5)",
                                     R"(h{e="1"} 4,5,6 sum 20)", "r{} 0.25",
                                     "g{} -1.5"});
}

TEST_CASE("Registry: a source is let go with its registration and the page",
          "[registry]") {
  const auto registry = Registry::create();
  auto source = std::make_shared<Words>(std::vector<std::uint64_t>{1});
  const std::weak_ptr<Words> watched = source;
  {
    const auto registration = registry->add(
        {{.family = {.name = "g"}, .series = {{}}}}, std::move(source), 1);
    REQUIRE(registration.ok());
    CHECK(lines_of(*registry).size() == 1);
    CHECK_FALSE(watched.expired());
  }
  CHECK(watched.expired());
}

TEST_CASE("Registry: a snapshot keeps its meaning when the page changes",
          "[registry]") {
  const auto registry = Registry::create();
  Snapshot snapshot;
  {
    const auto gauge = registry->add_gauge({.name = "g"});
    (*gauge)->set(2.0);
    registry->snapshot(snapshot);
  }
  CHECK(lines_of(snapshot) == Lines{"g{} 2"});
  registry->snapshot(snapshot);
  CHECK(lines_of(snapshot).empty());
}

TEST_CASE("Registry: scrapes race with registration, removal and writing",
          "[registry][concurrent]") {
  const auto registry = Registry::create();
  const auto steady = registry->add_counter({.name = "steady"});
  std::atomic<bool> stop{false};
  std::atomic<int> rounds{0};
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (const std::string id : {"1", "2"}) {
    threads.emplace_back([&, id] {
      while (!stop.load()) {
        auto counter = registry->add_counter({.name = "c"}, {{"t", id}});
        auto histogram =
            registry->add_histogram({.name = "h"}, kBounds, {{"t", id}});
        if (!counter.ok() || !histogram.ok()) {
          ++refused;
          return;
        }
        (*counter)->inc(7);
        (*histogram)->observe(1.5);
        const auto copy = *counter;
        ++rounds;
      }
    });
  }
  int wrong = 0;
  Snapshot snapshot;
  std::uint64_t scrapes = 0;
  while (scrapes < 200 || (rounds < 200 && refused == 0)) {
    ++scrapes;
    (*steady)->inc();
    registry->snapshot(snapshot);
    for (const auto& [family, series] : snapshot.schema->families) {
      for (const Series& one : series) {
        if (family.name == "steady") {
          wrong += snapshot.integer(one) == scrapes ? 0 : 1;
        } else if (family.name == "c") {
          const auto n = snapshot.integer(one);
          wrong += n == 0 || n == 7 ? 0 : 1;
        } else {
          const auto n = snapshot.buckets(one)[1];
          const double sum = 1.5 * static_cast<double>(n);
          wrong += n <= 1 && snapshot.sum(one) == sum ? 0 : 1;
        }
      }
    }
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(lines_of(*registry) == Lines{"steady{} " + std::to_string(scrapes)});
}

}  // namespace
}  // namespace vllm_metrics
