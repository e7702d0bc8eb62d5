#include "vllm_metrics/catalogue/lifecycle.h"

#include <catch2/catch.hpp>
#include <optional>
#include <set>
#include <string>

#include "vllm_metrics/catalogue/catalogue.h"

namespace vllm_metrics {
namespace {

using Text = std::optional<std::string>;

TEST_CASE("lifecycle: deprecated, hidden in the next release, then removed",
          "[catalogue]") {
  const Lifecycle lifecycle{.deprecated_in = WireVersion{0, 20},
                            .successor = "x"};
  const auto [minor, state] = GENERATE(table<int, std::string>({
      {19, "current"},
      {20, "deprecated"},
      {21, "hidden"},
      {22, "removed"},
      {40, "removed"},
  }));
  CHECK(name_of(state_of(lifecycle, {0, minor})) == state);
  CHECK(state_of({}, {0, minor}) == LifecycleState::kCurrent);
  CHECK(state_of({}, {0, minor}) == state_of({.successor = "x"}, {0, minor}));
}

TEST_CASE("lifecycle: a family that vLLM never hides stays deprecated",
          "[catalogue]") {
  const Lifecycle lifecycle{.deprecated_in = WireVersion{0, 20},
                            .successor = "x",
                            .stays_shown = true};
  CHECK(state_of(lifecycle, {0, 19}) == LifecycleState::kCurrent);
  CHECK(state_of(lifecycle, {0, 30}) == LifecycleState::kDeprecated);
}

TEST_CASE("lifecycle: hidden families are shown for the release before, only",
          "[catalogue]") {
  const auto [shown_for, running, expected] =
      GENERATE(table<Text, std::string, bool>({
          {std::nullopt, "0.30.1", false},
          {std::nullopt, "garbage", false},
          {"0.29", "0.30.1", true},
          {"0.29", "0.30.0rc1", true},
          {"0.29.0", "0.30.1", false},
          {"v0.29", "0.30.1", false},
          {"0.28", "0.30.1", false},
          {"0.30", "0.30.1", false},
          {"0.20", "0.21.0", true},
          {"0.19", "0.21.0", false},
          {"0.1", "0.0.1.dev7+gabc", true},
          {"7!1.0.post3", "0.0.5", true},
      }));
  const auto shown = shows_hidden(shown_for, running);
  REQUIRE(shown.ok());
  CHECK(*shown == expected);
}

TEST_CASE("lifecycle: a text that is no version is refused", "[catalogue]") {
  for (const std::string text :
       {"", "garbage!", "abc", "0..1", "0.29 beta x"}) {
    CHECK(shows_hidden(text, "0.30.0").status().message() ==
          "show_hidden_metrics_for_version = \"" + text +
              "\" is not a version; allowed: e.g. \"0.29\"");
  }
  CHECK(shows_hidden("0.29", "trunk").status().message() ==
        "vllm_version = \"trunk\" is not a version; allowed: e.g. \"0.30.0\"");
  CHECK(shows_hidden("0.29", "1.0.0").status().message() ==
        "vllm_version = \"1.0.0\"; allowed: a release 0.x");
}

TEST_CASE("lifecycle: HELP of a deprecated family names its successor",
          "[catalogue]") {
  MetricSpec spec = spec_of(MetricId::kPromptTokens);
  spec.lifecycle = {.deprecated_in = WireVersion{0, 20}, .successor = "vllm:y"};
  CHECK(help_of(spec, LifecycleState::kCurrent) == spec.help);
  CHECK(help_of(spec, LifecycleState::kDeprecated) ==
        "DEPRECATED since 0.20, use vllm:y: " + std::string(spec.help));
}

TEST_CASE("lifecycle: what is gone is told with a successor, never shown",
          "[catalogue]") {
  std::set<std::string_view> names;
  for (const GoneMetric& gone : gone_metrics()) {
    CHECK(names.insert(gone.name).second);
    CHECK(find_spec(gone.name) == nullptr);
    CHECK(gone.gone_since <= WireVersion{0, 27});
    if (gone.successor.starts_with("vllm:")) {
      CHECK(find_spec(gone.successor) != nullptr);
    }
  }
  CHECK(names.contains("vllm:gpu_cache_usage_perc"));
  CHECK(names.size() == 7);
}

TEST_CASE(
    "lifecycle: what is deprecated, hidden and gone can be listed, and why",
    "[catalogue]") {
  const auto listed = list_lifecycle({0, 30});
  REQUIRE(listed.ok());
  REQUIRE(listed->size() == 3 + gone_metrics().size());
  const LifecycleEntry& first = listed->front();
  CHECK(first.name == "vllm:kv_offload_total_bytes");
  CHECK(first.state == LifecycleState::kDeprecated);
  CHECK(first.on_page);
  CHECK((first.since == WireVersion{0, 27}));
  CHECK(first.successor ==
        "vllm:kv_offload_load_bytes and vllm:kv_offload_store_bytes");
  CHECK(first.why == "deprecated in 0.27; vLLM does not hide it");
  const LifecycleEntry& last = listed->back();
  CHECK(last.name == "vllm:spec_decode_efficiency");
  CHECK(last.state == LifecycleState::kRemoved);
  CHECK_FALSE(last.on_page);
  CHECK(last.why == "vLLM has not had it since 0.10");
  CHECK(list_lifecycle({0, 26})->size() == gone_metrics().size());
  CHECK(list_lifecycle({0, 30}, "abc").status().message() ==
        "show_hidden_metrics_for_version = \"abc\" is not a version; allowed: "
        "e.g. \"0.29\"");
}

}  // namespace
}  // namespace vllm_metrics
