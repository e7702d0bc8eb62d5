#include "vllm_metrics/exposition/open_metrics.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "vllm_metrics/exposition/text_parser.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics {
namespace {

std::string page(const Registry& registry, OpenMetricsOptions options = {}) {
  return std::string(OpenMetrics(options).render(registry));
}

TEST_CASE("OpenMetrics: a counter's family has no _total, its sample has",
          "[exposition]") {
  const auto registry = Registry::create();
  const auto tokens = registry->add_counter(
      {.name = "vllm:prompt_tokens", .help = "Tokens.", .unit = "tokens"},
      {{"engine", "0"}, {"model_name", "m"}});
  REQUIRE(tokens.ok());
  (*tokens)->inc(5);
  CHECK(page(*registry) ==
        "# HELP vllm:prompt_tokens Tokens.\n"
        "# TYPE vllm:prompt_tokens counter\n"
        "# UNIT vllm:prompt_tokens tokens\n"
        "vllm:prompt_tokens_total{engine=\"0\",model_name=\"m\"} 5.0\n"
        "# EOF\n");
}

TEST_CASE("OpenMetrics: HELP escapes the quote as well", "[exposition]") {
  const auto registry = Registry::create();
  const auto gauge =
      registry->add_gauge({.name = "m", .help = "path \"x\"\\y\nz"},
                          {{"model_name", "a\"b\\c\nd"}});
  REQUIRE(gauge.ok());
  CHECK(page(*registry) ==
        "# HELP m path \\\"x\\\"\\\\y\\nz\n"
        "# TYPE m gauge\n"
        "m{model_name=\"a\\\"b\\\\c\\nd\"} 0.0\n"
        "# EOF\n");
}

TEST_CASE("OpenMetrics: a unit is shown only where it ends the name",
          "[exposition]") {
  const auto registry = Registry::create();
  const auto ends =
      registry->add_gauge({.name = "wait_seconds", .unit = "seconds"});
  const auto other = registry->add_gauge({.name = "usage", .unit = "ratio"});
  const auto no_name = registry->add_gauge({.name = "bytes", .unit = "bytes"});
  const auto no_blank =
      registry->add_gauge({.name = "kilobytes", .unit = "bytes"});
  REQUIRE((ends.ok() && other.ok() && no_name.ok() && no_blank.ok()));
  const std::string text = page(*registry);
  CHECK(text.find("# UNIT wait_seconds seconds\n") != std::string::npos);
  CHECK(text.find("# UNIT", text.find("# UNIT") + 1) == std::string::npos);
}

TEST_CASE("OpenMetrics: a histogram may be called _total, with any bounds",
          "[exposition]") {
  const auto registry = Registry::create();
  const double bounds[] = {1, 1e6};
  const auto h = registry->add_histogram(
      {.name = "vllm:iteration_tokens_total", .help = "x", .unit = "tokens"},
      bounds, {{"zone", "z"}});
  REQUIRE(h.ok());
  (*h)->observe(3);
  CHECK(page(*registry) ==
        "# HELP vllm:iteration_tokens_total x\n"
        "# TYPE vllm:iteration_tokens_total histogram\n"
        "vllm:iteration_tokens_total_bucket{le=\"1.0\",zone=\"z\"} 0.0\n"
        "vllm:iteration_tokens_total_bucket{le=\"1e+06\",zone=\"z\"} 1.0\n"
        "vllm:iteration_tokens_total_bucket{le=\"+Inf\",zone=\"z\"} 1.0\n"
        "vllm:iteration_tokens_total_count{zone=\"z\"} 1.0\n"
        "vllm:iteration_tokens_total_sum{zone=\"z\"} 3.0\n"
        "# EOF\n");
  CHECK_FALSE(registry->add_counter({.name = "vllm:iteration_tokens"}).ok());
}

TEST_CASE("OpenMetrics: _created is in the family, behind its series' samples",
          "[exposition]") {
  const auto registry = Registry::create();
  const auto a = registry->add_counter({.name = "c"}, {{"l", "a"}});
  const auto b = registry->add_counter({.name = "c"}, {{"l", "b"}});
  REQUIRE((a.ok() && b.ok()));
  const std::string text = page(*registry, {.created_series = true});
  const auto parsed = parse_page(text);
  REQUIRE(parsed.ok());
  REQUIRE(parsed->families.size() == 1);
  REQUIRE(parsed->families[0].series.size() == 2);
  for (const auto& series : parsed->families[0].series) {
    CHECK(series.created.value_or(0) > 1.5e9);
  }
  CHECK(text.find("c_total{l=\"a\"} 0.0\nc_created{l=\"a\"} 1.") !=
        std::string::npos);
}

TEST_CASE("OpenMetrics: a registry without a metric is only the end mark",
          "[exposition]") {
  CHECK(page(*Registry::create()) == "# EOF\n");
}

}  // namespace
}  // namespace vllm_metrics
