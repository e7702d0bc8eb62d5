#include "vllm_metrics/registry/family.h"

#include <catch2/catch.hpp>
#include <string>
#include <utility>

namespace vllm_metrics {
namespace {

TEST_CASE("check_family: metric names are allowed", "[registry]") {
  const std::string name =
      GENERATE("a", "_", ":", "vllm:num_requests_running", "A9_:", "__x",
               "iteration_tokens_total", "x_total_total");
  for (const auto kind :
       {MetricKind::kCounter, MetricKind::kGauge, MetricKind::kHistogram}) {
    CHECK(check_family({.name = name, .kind = kind}).ok());
  }
}

TEST_CASE("check_family: any other name is refused, with what is allowed",
          "[registry]") {
  using Case = std::pair<std::string, std::string>;
  const auto [name, shown] = GENERATE(values<Case>({
      {"", ""},
      {"9a", "9a"},
      {"a-b", "a-b"},
      {"a.b", "a.b"},
      {"a b", "a b"},
      {"a\n", "a\n"},
      {"a{", "a{"},
      {"\xC3\xA4", "\xC3\xA4"},
      {"a\xFF", "a\xEF\xBF\xBD"},
  }));
  const auto status = check_family({.name = name});
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK(std::string(status.message()) ==
        "family \"" + shown +
            "\" is not a metric name; allowed: [a-zA-Z_:][a-zA-Z0-9_:]*");
}

TEST_CASE("check_family: _total alone names no counter", "[registry]") {
  const auto status =
      check_family({.name = "_total", .kind = MetricKind::kCounter});
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK(std::string(status.message()) ==
        "family \"_total\" is a suffix without a name before it");
  CHECK(check_family({.name = "_total", .kind = MetricKind::kGauge}).ok());
}

TEST_CASE("check_family: only gauges are info families", "[registry]") {
  CHECK(check_family({.name = "i", .info = true}).ok());
  const auto [kind, text] = GENERATE(values<std::pair<MetricKind, std::string>>(
      {{MetricKind::kCounter, "counter"},
       {MetricKind::kHistogram, "histogram"}}));
  const auto status = check_family({.name = "i", .kind = kind, .info = true});
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK(std::string(status.message()) ==
        "family i is an info family of kind " + text + "; allowed: gauge");
}

TEST_CASE("normalized: a counter's name loses one _total, no other name does",
          "[registry]") {
  const auto name_after = [](std::string name, MetricKind kind) {
    return normalized(Family{.name = std::move(name), .kind = kind}).name;
  };
  CHECK(name_after("x_total", MetricKind::kCounter) == "x");
  CHECK(name_after("x", MetricKind::kCounter) == "x");
  CHECK(name_after("x_total_total", MetricKind::kCounter) == "x_total");
  CHECK(name_after("x_total", MetricKind::kGauge) == "x_total");
  CHECK(name_after("x_total", MetricKind::kHistogram) == "x_total");
  CHECK(normalized(Family{.name = "x", .help = "a\xFFz"}).help ==
        "a\xEF\xBF\xBDz");
}

TEST_CASE("name_of: kinds are called as in a TYPE line", "[registry]") {
  CHECK(name_of(MetricKind::kCounter) == "counter");
  CHECK(name_of(MetricKind::kGauge) == "gauge");
  CHECK(name_of(MetricKind::kHistogram) == "histogram");
}

}  // namespace
}  // namespace vllm_metrics
