#include "vllm_metrics/testing/lint.h"

#include <array>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "vllm_metrics/catalogue/catalogue.h"
#include "vllm_metrics/exposition/text_parser.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics::testing {
namespace {

// "metric rule" of each remark on a page.
std::vector<std::string> rules(const std::string& text) {
  const auto page = parse_page(text);
  INFO(page.status());
  REQUIRE(page.ok());
  std::vector<std::string> found;
  for (const auto& remark : lint(*page))
    found.push_back(remark.metric + " " + remark.rule);
  return found;
}

// Of a family with that TYPE line and one sample.
std::vector<std::string> rules_of(const std::string& name,
                                  const std::string& type,
                                  const std::string& labels = "") {
  return rules("# HELP " + name + " Help.\n# TYPE " + name + " " + type + "\n" +
               name + labels + " 1\n");
}

using Found = std::vector<std::string>;

TEST_CASE("lint: what the guide recommends has no remark", "[testing]") {
  CHECK(rules("# HELP a_seconds_total A.\n"
              "# TYPE a_seconds_total counter\n"
              "a_seconds_total{model_name=\"m\"} 1\n"
              "# HELP b_bytes B.\n"
              "# TYPE b_bytes histogram\n"
              "b_bytes_bucket{le=\"1\"} 1\n"
              "b_bytes_bucket{le=\"+Inf\"} 1\n"
              "b_bytes_sum 1\n"
              "b_bytes_count 1\n"
              "# HELP c_ratio C.\n"
              "# TYPE c_ratio summary\n"
              "c_ratio{quantile=\"0.5\"} 1\n"
              "c_ratio_count 1\n")
            .empty());
}

TEST_CASE("lint: each rule has its remark", "[testing]") {
  CHECK(rules("# TYPE a gauge\na 1\n") == Found{"a help"});
  CHECK(rules_of("a", "counter") == Found{"a total"});
  CHECK(rules_of("a_total", "gauge") == Found{"a_total total"});
  CHECK(rules_of("a_total", "untyped").empty());
  CHECK(rules_of("a_bucket", "gauge") == Found{"a_bucket suffix"});
  CHECK(rules_of("a_count", "gauge") == Found{"a_count suffix"});
  CHECK(rules_of("a_sum", "gauge") == Found{"a_sum suffix"});
  CHECK(rules_of("a_Gauge", "gauge") == Found{"a_Gauge type_in_name"});
  CHECK(rules_of("my_counter_x", "gauge") ==
        Found{"my_counter_x type_in_name"});
  CHECK(rules_of("a_milliseconds", "gauge") ==
        Found{"a_milliseconds base_unit"});
  CHECK(rules_of("a_hours", "gauge") == Found{"a_hours base_unit"});
  CHECK(rules_of("a_mebibytes", "gauge") == Found{"a_mebibytes base_unit"});
  CHECK(rules_of("thermometers", "gauge").empty());
  CHECK(rules_of("a_ms", "gauge") == Found{"a_ms abbreviation"});
  CHECK(rules_of("a_percent", "gauge") == Found{"a_percent ratio"});
  CHECK(rules_of("a:b", "gauge") == Found{"a:b colon"});
  CHECK(rules_of("aB", "gauge") == Found{"aB case"});
  CHECK(rules_of("a", "gauge", "{modelName=\"m\"}") == Found{"a case"});
  CHECK(rules_of("a", "gauge", "{le=\"1\"}") == Found{"a label"});
  CHECK(rules_of("a", "gauge", "{quantile=\"1\"}") == Found{"a label"});
}

TEST_CASE("lint: a remark says what is expected", "[testing]") {
  const auto page =
      parse_page("# HELP a_kilobytes A.\n# TYPE a_kilobytes gauge\n");
  REQUIRE(page.ok());
  CHECK(lint(*page) == std::vector<LintRemark>{
                           {"a_kilobytes", "base_unit",
                            "a_kilobytes is in kilobytes; expected: bytes"}});
}

TEST_CASE("lint: OpenMetrics counters have their _total in the samples",
          "[testing]") {
  CHECK(rules("# HELP a A.\n# TYPE a counter\na_total 1\n# EOF\n").empty());
}

TEST_CASE("lint: a registry is read as its page is", "[testing]") {
  const auto registry = Registry::create();
  const auto good = *registry->add_counter({.name = "good", .help = "Good."});
  const auto bad = *registry->add_histogram(
      {.name = "wait_ms", .help = "Wait."}, std::array{1.0}, {{"aB", "x"}});
  std::vector<std::string> found;
  for (const auto& remark : lint(*registry))
    found.push_back(remark.metric + " " + remark.rule);
  CHECK(found == Found{"wait_ms abbreviation", "wait_ms case"});
}

TEST_CASE("lint: an exception is for one metric, and one rule or all",
          "[testing]") {
  const auto page = parse_page("# TYPE aB_ms gauge\naB_ms 1\n");
  REQUIRE(page.ok());
  CHECK(lint(*page).size() == 3);
  const auto left = [&](LintException exception) {
    return lint(*page, std::array{exception}).size();
  };
  CHECK(left({"aB_ms", "help", "r"}) == 2);
  CHECK(left({"aB_ms", "", "r"}) == 0);
  CHECK(left({"aB", "", "r"}) == 3);
}

// The reasons are the catalogue's notes: a family that needs one and has none
// fails here.
TEST_CASE("lint: the catalogue passes, but for what its notes are about",
          "[testing]") {
  const auto registry = Registry::create();
  std::vector<Handle<Counter>> counters;
  std::vector<Handle<Gauge>> gauges;
  std::vector<Handle<Histogram>> histograms;
  for (const MetricSpec& spec : catalogue()) {
    Labels labels = {{"model_name", "m"}};
    for (const ExtraLabel& extra : {spec.extra_label, spec.second_label}) {
      if (!extra.name.empty()) labels.push_back({std::string(extra.name), "x"});
    }
    CAPTURE(spec.name);
    switch (spec.kind) {
      case MetricKind::kCounter: {
        Family family = family_of(spec);
        family.number = CounterNumber::kInteger;
        counters.push_back(registry->add_counter(family, labels).value());
        break;
      }
      case MetricKind::kGauge:
        gauges.push_back(registry->add_gauge(family_of(spec), labels).value());
        break;
      case MetricKind::kHistogram:
        histograms.push_back(
            registry
                ->add_histogram(family_of(spec), std::array{1.0, 2.0}, labels)
                .value());
        break;
    }
  }
  const auto exceptions = vllm_exceptions();
  for (const LintException& exception : exceptions)
    CHECK_FALSE(exception.reason.empty());
  std::string remarks;
  for (const auto& remark : lint(*registry, exceptions))
    remarks += remark.text + "\n";
  CHECK(remarks == "");
  CHECK(lint(*registry).size() > 50);  // colons alone
}

}  // namespace
}  // namespace vllm_metrics::testing
