// What a registry refuses, and what it says then.

#include <catch2/catch.hpp>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/registry/page_lines.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics {
namespace {

using Lines = std::vector<std::string>;

const std::vector<double> kBounds{1, 2};

class Zeros : public SnapshotSource {
 public:
  void read(std::span<std::uint64_t> words) const noexcept override {
    for (auto& word : words) word = 0;
  }
};

SchemaFamily gauge(std::string name, std::vector<Labels> label_sets = {{}}) {
  SchemaFamily family{{.name = std::move(name)}, {}};
  for (Labels& labels : label_sets) {
    family.series.push_back({.labels = std::move(labels)});
  }
  return family;
}

absl::Status add(Registry& registry, std::vector<SchemaFamily> families,
                 std::size_t words = 1) {
  return registry.add(std::move(families), std::make_shared<Zeros>(), words)
      .status();
}

std::string text(const absl::Status& status) {
  return std::string(status.message());
}

// A registry with one family of each kind.
struct Page {
  std::shared_ptr<Registry> registry = Registry::create();
  Handle<Counter> counter =
      *registry->add_counter({.name = "c", .help = "C."}, {{"a", "1"}});
  Handle<Gauge> gauge = *registry->add_gauge({.name = "g", .help = "G."});
  Handle<Histogram> histogram =
      *registry->add_histogram({.name = "h", .help = "H."}, kBounds);
  Handle<Gauge> info =
      *registry->add_gauge({.name = "i", .info = true}, {{"x", "1"}});
};

void check_unchanged(const Page& page) {
  CHECK(lines_of(*page.registry) ==
        Lines{R"(c{a="1"} 0)", "g{} 0", "h{} 0,0,0 sum 0", R"(i{x="1"} 0)"});
}

TEST_CASE("Registry: a family that is registered otherwise is refused",
          "[registry]") {
  Page page;
  Registry& registry = *page.registry;
  const auto c_as_gauge = registry.add_gauge({.name = "c", .help = "C."});
  CHECK(c_as_gauge.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(text(c_as_gauge.status()) ==
        "family c is already registered as a counter");
  CHECK(text(registry.add_counter({.name = "g", .help = "G."}).status()) ==
        "family g is already registered as a gauge");
  CHECK(
      text(registry.add_counter({.name = "h_total", .help = "H."}).status()) ==
      "family h is already registered as a histogram");
  CHECK(text(registry.add_gauge({.name = "g", .help = "Gg."}, {{"a", "2"}})
                 .status()) ==
        "family g is already registered with the help \"G.\"");
  CHECK(
      text(registry
               .add_gauge({.name = "g", .help = "G.", .mode = GaugeMode::kSum})
               .status()) ==
      "family g is already registered with another number type or merge "
      "mode");
  CHECK(text(registry.add_gauge({.name = "i"}, {{"x", "2"}}).status()) ==
        "family i is already registered as an info family");
  CHECK(text(registry.add_gauge({.name = "g", .help = "G.", .info = true})
                 .status()) ==
        "family g is already registered not as an info family");
  check_unchanged(page);
}

TEST_CASE("Registry: a name that another family's samples have is refused",
          "[registry]") {
  Page page;
  Registry& registry = *page.registry;
  using Case = std::pair<std::string, std::string>;
  SECTION("a gauge after a counter or histogram") {
    const auto [name, owner] = GENERATE(values<Case>({{"c_total", "c"},
                                                      {"c_created", "c"},
                                                      {"h_bucket", "h"},
                                                      {"h_count", "h"},
                                                      {"h_sum", "h"},
                                                      {"h_created", "h"}}));
    const auto refused = registry.add_gauge({.name = name});
    CHECK(refused.status().code() == absl::StatusCode::kInvalidArgument);
    CHECK(text(refused.status()) == "family " + name + ": the name " + name +
                                        " belongs to family " + owner);
  }
  SECTION("a histogram after a gauge") {
    const auto taken = registry.add_gauge({.name = "late_count"});
    CHECK(text(registry.add_histogram({.name = "late"}, kBounds).status()) ==
          "family late: the name late_count belongs to family late_count");
  }
  SECTION("a counter after a histogram whose name ends in _total") {
    const auto taken = registry.add_histogram({.name = "steps_total"}, kBounds);
    REQUIRE(taken.ok());
    CHECK(text(registry.add_counter({.name = "steps"}).status()) ==
          "family steps: the name steps_total belongs to family steps_total");
    return;
  }
  SECTION("names that only look alike are free") {
    const auto a = registry.add_gauge({.name = "g_total"});
    const auto b = registry.add_gauge({.name = "h_total"});
    const auto c = registry.add_gauge({.name = "c_count"});
    CHECK(a.ok());
    CHECK(b.ok());
    CHECK(c.ok());
    return;
  }
  check_unchanged(page);
}

TEST_CASE("Registry: the series of a family have the same label names",
          "[registry]") {
  Page page;
  Registry& registry = *page.registry;
  const auto refused =
      registry.add_counter({.name = "c", .help = "C."}, {{"b", "1"}});
  CHECK(refused.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(text(refused.status()) ==
        "family c: the labels of {b=\"1\"} differ in name from those of "
        "{a=\"1\"}");
  CHECK(text(registry.add_counter({.name = "c", .help = "C."}).status()) ==
        "family c: the labels of {} differ in name from those of {a=\"1\"}");
  CHECK(text(registry
                 .add_counter({.name = "c", .help = "C."},
                              {{"a", "1"}, {"b", "1"}})
                 .status()) ==
        "family c: the labels of {a=\"1\",b=\"1\"} differ in name from those "
        "of {a=\"1\"}");
  CHECK(text(add(registry, {gauge("n", {{{"a", "1"}}, {{"b", "1"}}})})) ==
        "family n: the labels of {b=\"1\"} differ in name from those of "
        "{a=\"1\"}");
  check_unchanged(page);
}

TEST_CASE(
    "Registry: a series that is on the page is refused, with the list of "
    "families",
    "[registry]") {
  Page page;
  const auto one = page.registry->add_counter({.name = "c_total", .help = "C."},
                                              {{"a", "1"}});
  CHECK(one.status().code() == absl::StatusCode::kAlreadyExists);
  CHECK(text(one.status()) ==
        "the same series (name and labels) are already registered in 1 "
        "family: c");
  SchemaFamily g = gauge("g");
  g.family.help = "G.";
  const SchemaFamily c{
      {.name = "c", .help = "C.", .kind = MetricKind::kCounter},
      {{.labels = {{"a", "2"}}}, {.labels = {{"a", "1"}}}}};
  const auto two = add(*page.registry, {gauge("fresh"), c, g, g});
  CHECK(two.code() == absl::StatusCode::kAlreadyExists);
  CHECK(text(two) ==
        "the same series (name and labels) are already registered in 2 "
        "families: c, g");
  check_unchanged(page);
  // Nothing is left of the families that would have fitted.
  CHECK(page.registry->add_histogram({.name = "fresh"}, kBounds).ok());
  CHECK(page.registry->add_counter({.name = "c", .help = "C."}, {{"a", "2"}})
            .ok());
}

// Families were only compared with those on the page, so one call could put
// clashing names on it.
TEST_CASE("Registry: families of one call must fit each other, too",
          "[registry]") {
  const auto registry = Registry::create();
  const SchemaFamily counter{{.name = "x", .kind = MetricKind::kCounter}, {{}}};
  CHECK(text(add(*registry, {counter, gauge("x")})) ==
        "family x is already registered as a counter");
  CHECK(text(add(*registry, {counter, gauge("x_total")})) ==
        "family x_total: the name x_total belongs to family x");
  CHECK(text(add(*registry, {gauge("x_total"), counter})) ==
        "family x: the name x_total belongs to family x_total");
  CHECK(text(add(*registry, {gauge("x"), gauge("x", {{{"a", "1"}}})})) ==
        "family x: the labels of {a=\"1\"} differ in name from those of {}");
  CHECK(add(*registry, {gauge("x"), gauge("x")}).code() ==
        absl::StatusCode::kAlreadyExists);
  CHECK(add(*registry, {gauge("x", {{{"a", "1"}}, {{"a", "1"}}})}).code() ==
        absl::StatusCode::kAlreadyExists);
  CHECK(lines_of(*registry).empty());
  CHECK(add(*registry, {gauge("x", {{{"a", "1"}}}), gauge("x", {{{"a", "2"}}})})
            .ok());
}

TEST_CASE(
    "Registry: labels that the exposition or Prometheus writes are "
    "refused",
    "[registry]") {
  Page page;
  Registry& registry = *page.registry;
  CHECK(text(registry.add_histogram({.name = "n"}, kBounds, {{"le", "1"}})
                 .status()) ==
        "family n: label \"le\" is written by the exposition itself");
  CHECK(registry.add_gauge({.name = "n"}, {{"le", "1"}}).ok());
  CHECK(text(registry.add_gauge({.name = "n"}, {{"__x", "1"}}).status()) ==
        "family n: label \"__x\" starts with \"__\", which Prometheus keeps "
        "for itself");
  CHECK(text(registry.add_gauge({.name = "n"}, {{"a", "1"}, {"a", "2"}})
                 .status()) == "family n: label \"a\" is given twice");
  check_unchanged(page);
}

TEST_CASE("Registry: a family's own faults are named before any lock is taken",
          "[registry]") {
  const auto registry = Registry::create();
  CHECK(text(registry->add_gauge({.name = "a b"}).status()) ==
        "family \"a b\" is not a metric name; allowed: "
        "[a-zA-Z_:][a-zA-Z0-9_:]*");
  // The suffix was taken off first, and the family called "".
  CHECK(text(registry->add_counter({.name = "_total"}).status()) ==
        "family \"_total\" is a suffix without a name before it");
  CHECK(text(registry->add_histogram({.name = "h"}, {}).status()) ==
        "family h: at least one finite bound is needed");
  CHECK(
      text(registry->add_histogram({.name = "h"}, std::vector<double>{0.1, 0.1})
               .status()) ==
      "family h: bounds[1] = 0.1 is not above bounds[0] = 0.1");
  CHECK(lines_of(*registry).empty());
}

TEST_CASE("Registry: series whose words the source does not have are refused",
          "[registry]") {
  const auto registry = Registry::create();
  auto bounds =
      std::make_shared<const BucketBounds>(*BucketBounds::create(kBounds));
  const auto histogram = [&](std::uint32_t offset) {
    return SchemaFamily{{.name = "h", .kind = MetricKind::kHistogram},
                        {{.offset = offset, .bounds = bounds}}};
  };
  CHECK(add(*registry, {histogram(6)}, 10).ok());
  CHECK(text(add(*registry, {histogram(7)}, 10)) ==
        "family h: offset 7 with 4 words lies past the 10 words of its source");
  constexpr auto kLast = std::numeric_limits<std::uint32_t>::max();
  CHECK(text(add(*registry, {histogram(kLast)}, 10)) ==
        "family h: offset 4294967295 with 4 words lies past the 10 words of "
        "its source");
  SchemaFamily unbound = histogram(0);
  unbound.series[0].bounds = nullptr;
  CHECK(text(add(*registry, {unbound}, 10)) ==
        "family h is a histogram without bounds");
  CHECK(text(registry->add({gauge("g")}, nullptr, 1).status()) ==
        "source is null; allowed: what fills the words of the families");
}

}  // namespace
}  // namespace vllm_metrics
