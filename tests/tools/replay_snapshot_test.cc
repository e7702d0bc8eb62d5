#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/tools/replay/snapshot_json.h"
#include "vllm_metrics/registry/registry.h"

namespace {

using namespace vllm_metrics;

nlohmann::json json_of(const Registry& registry) {
  Snapshot snapshot;
  registry.snapshot(snapshot);
  return replay::snapshot_json(snapshot);
}

Family counter(std::string name, CounterNumber number) {
  return {.name = std::move(name),
          .help = "A count.",
          .kind = MetricKind::kCounter,
          .number = number};
}

}  // namespace

TEST_CASE("snapshot_json: a counter is a whole number, exact up to 64 bits",
          "[tools]") {
  const auto registry = Registry::create();
  auto tokens = registry->add_counter(
      counter("vllm:tokens", CounterNumber::kInteger), {{"engine", "0"}});
  REQUIRE(tokens.ok());
  (*tokens)->inc((std::uint64_t{1} << 61) + 1);
  const auto json = json_of(*registry);
  REQUIRE(json.size() == 1);
  CHECK(json[0]["value"].dump() == "2305843009213693953");
  CHECK(json[0]["name"] == "vllm:tokens");
  CHECK(json[0]["kind"] == "counter");
  CHECK(json[0]["labels"] == nlohmann::json{{"engine", "0"}});
}

TEST_CASE("snapshot_json: gauges that are not finite are texts", "[tools]") {
  const auto registry = Registry::create();
  const Family usage{.name = "vllm:usage", .help = "A state."};
  auto first = registry->add_gauge(usage, {{"engine", "1"}});
  auto second = registry->add_gauge(usage, {{"engine", "0"}});
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  (*first)->set(std::numeric_limits<double>::quiet_NaN());
  (*second)->set(-std::numeric_limits<double>::infinity());
  const auto json = json_of(*registry);
  REQUIRE(json.size() == 2);
  CHECK(json[0]["value"] == "-Infinity");  // engine 0: sorted by labels
  CHECK(json[1]["value"] == "NaN");
}

TEST_CASE("snapshot_json: buckets are cumulative and named as on the page",
          "[tools]") {
  const auto registry = Registry::create();
  const std::vector<double> bounds = {0.5, 1000000.0};
  auto sizes = registry->add_histogram(
      {.name = "vllm:sizes", .help = "Sizes.", .kind = MetricKind::kHistogram},
      bounds);
  REQUIRE(sizes.ok());
  for (const double size : {0.25, 0.5, 7.0, 2e6}) (*sizes)->observe(size);
  const auto json = json_of(*registry);
  REQUIRE(json.size() == 1);
  CHECK(json[0]["buckets"] ==
        nlohmann::json{{"0.5", 2}, {"1e+06", 3}, {"+Inf", 4}});
  CHECK(json[0]["count"] == 4);
  CHECK(json[0]["sum"] == 2000007.75);
}

TEST_CASE(
    "snapshot_json: counters by position are one vector for each engine, as "
    "long as the longest",
    "[tools]") {
  const auto registry = Registry::create();
  const Family accepted =
      counter("vllm:accepted_per_pos", CounterNumber::kInteger);
  const auto at = [&](const std::string& engine, const std::string& position) {
    auto made = registry->add_counter(
        accepted, {{"engine", engine}, {"position", position}});
    REQUIRE(made.ok());
    return *std::move(made);
  };
  const auto a = at("0", "0");
  const auto b = at("0", "10");
  const auto c = at("1", "1");
  a->inc(5);
  b->inc(2);
  c->inc(9);
  const auto json = json_of(*registry);
  REQUIRE(json.size() == 2);
  CHECK(json[0]["kind"] == "vector");
  CHECK(json[0]["labels"] == nlohmann::json{{"engine", "0"}});
  CHECK(json[0]["values"] == nlohmann::json({5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}));
  CHECK(json[1]["labels"] == nlohmann::json{{"engine", "1"}});
  CHECK(json[1]["values"] == nlohmann::json({0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST_CASE("snapshot_json: families of others are left out", "[tools]") {
  const auto registry = Registry::create();
  auto own = registry->add_counter(
      counter("vllm_metrics_errors", CounterNumber::kInteger));
  REQUIRE(own.ok());
  CHECK(json_of(*registry) == nlohmann::json::array());
}
