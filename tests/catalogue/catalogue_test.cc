#include "vllm_metrics/catalogue/catalogue.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/primitives/bound_probes.h"
#include "vllm_metrics/primitives/bucket_bounds.h"
#include "vllm_metrics/registry/family.h"
#include "vllm_metrics/registry/labels.h"

namespace vllm_metrics {
namespace {

using nlohmann::json;
using Names = std::vector<std::string>;

// What vLLM exposes, by family name.
std::map<std::string, json> vllm_families() {
  std::ifstream file(VLLM_METRICS_TEST_DATA "/catalogue/vllm_families.json");
  const json facts = json::parse(file);
  std::map<std::string, json> families;
  for (const json& family : facts.at("families")) {
    families[family.at("name")] = family;
  }
  return families;
}

bool is_vllms(const MetricSpec& spec) { return spec.name.starts_with("vllm:"); }

Names label_names(const MetricSpec& spec) {
  Names names;
  const bool front_end = spec.scope == Scope::kFrontEnd;
  if (spec.scope != Scope::kInfo && !front_end) names.push_back("model_name");
  if (spec.scope != Scope::kManager && !front_end) names.push_back("engine");
  if (!spec.extra_label.name.empty()) {
    names.emplace_back(spec.extra_label.name);
  }
  if (!spec.second_label.name.empty()) {
    names.emplace_back(spec.second_label.name);
  }
  return names;
}

// The conditions that mean the same whatever the engine's features.
std::optional<Condition> condition_of(const json& facts) {
  const std::map<std::string, Condition> known{
      {"always", Condition::kAlways},
      {"nan_check", Condition::kNanCheck},
      {"kv_cache_metrics", Condition::kKvCacheMetrics},
      {"engine_initialized", Condition::kEngineInitialized}};
  const auto found = known.find(facts.at("when"));
  return found != known.end() ? std::optional(found->second) : std::nullopt;
}

TEST_CASE("Catalogue: has all that vLLM's facts are of, 88 families",
          "[catalogue]") {
  CHECK(vllm_families().size() == 88);
  for (const auto& [name, facts] : vllm_families()) {
    CAPTURE(name);
    CHECK(find_spec(name) != nullptr);
  }
}

TEST_CASE(
    "Catalogue: has every family that vLLM exposes always, with the NaN "
    "check, of KV residency and of the cache configuration",
    "[catalogue]") {
  const std::set<std::string> expected{
      "always", "nan_check", "kv_cache_metrics", "engine_initialized"};
  std::size_t found = 0;
  for (const auto& [name, facts] : vllm_families()) {
    if (expected.count(facts.at("when")) == 0) continue;
    CAPTURE(name);
    CHECK(find_spec(name) != nullptr);
    ++found;
  }
  CHECK(found == 46);
}

TEST_CASE("Catalogue: every vLLM family is as vLLM exposes it", "[catalogue]") {
  const auto families = vllm_families();
  for (const MetricSpec& spec : catalogue()) {
    if (!is_vllms(spec)) continue;
    const std::string name(spec.name);
    CAPTURE(name);
    REQUIRE(families.count(name) == 1);
    const json& facts = families.at(name);
    CHECK(std::string(name_of(spec.kind)) == facts.at("type"));
    if (spec.scope != Scope::kInfo) {
      CHECK(label_names(spec) == facts.at("labels").get<Names>());
    }
    if (const auto condition = condition_of(facts)) {
      CHECK((spec.condition == *condition));
    } else {
      CHECK((spec.condition != Condition::kAlways));
    }
    const std::string suffix =
        spec.kind == MetricKind::kCounter ? "_total" : "";
    CHECK(name + suffix == facts.at("samples"));
    CHECK(std::to_string(spec.since.major) + "." +
              std::to_string(spec.since.minor) ==
          facts.value("since", "0.27"));
    CHECK(spec.lifecycle.deprecated_in.has_value() ==
          facts.contains("deprecated"));
    for (const ExtraLabel& label : {spec.extra_label, spec.second_label}) {
      if (label.values.empty()) continue;
      const json& closed = facts.at("label_values").at(std::string(label.name));
      CHECK(Names(label.values.begin(), label.values.end()) ==
            closed.get<Names>());
    }
    // A sum of times over processes says nothing: the newest is shown here.
    if (facts.contains("multiprocess_mode") &&
        name != "vllm:lora_requests_info") {
      CHECK(facts.at("multiprocess_mode") == "mostrecent");
    }
  }
}

TEST_CASE("Catalogue: histograms have vLLM's bounds", "[catalogue]") {
  std::size_t found = 0;
  for (const auto& [name, facts] : vllm_families()) {
    const MetricSpec* spec = find_spec(name);
    if (spec == nullptr || spec->kind != MetricKind::kHistogram) continue;
    CAPTURE(name);
    ++found;
    const std::vector<double> bounds(spec->buckets.begin(),
                                     spec->buckets.end());
    if (facts.at("buckets") == "one_two_five") {
      CHECK(bounds.empty());
    } else {
      CHECK(bounds == facts.at("buckets").get<std::vector<double>>());
    }
  }
  CHECK(found >= 18);
}

TEST_CASE("Catalogue: no family has buckets but histograms", "[catalogue]") {
  for (const MetricSpec& spec : catalogue()) {
    CAPTURE(std::string(spec.name));
    if (spec.kind != MetricKind::kHistogram) CHECK(spec.buckets.empty());
  }
}

TEST_CASE(
    "Catalogue: every list of bounds is searched by a table, and as by "
    "counting",
    "[catalogue]") {
  std::set<std::vector<double>> lists;
  for (const MetricSpec& spec : catalogue()) {
    if (spec.buckets.empty()) continue;
    lists.insert({spec.buckets.begin(), spec.buckets.end()});
  }
  for (const auto max_model_len : {1, 7, 8192, 131072, 10485760}) {
    lists.insert(one_two_five_buckets(max_model_len));
  }
  CHECK(lists.size() >= 11);
  for (const auto& list : lists) {
    CAPTURE(list);
    const auto bounds = BucketBounds::create(list);
    REQUIRE(bounds.has_value());
    CHECK(bounds->has_table());
    std::size_t wrong = 0;
    for (const double v : probes_of(list)) {
      wrong += bounds->bucket_of(v) == bounds_below(list, v) ? 0U : 1U;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("Catalogue: counters are whole numbers, but for estimates and times",
          "[catalogue]") {
  for (const MetricSpec& spec : catalogue()) {
    CAPTURE(std::string(spec.name));
    const bool is_real = spec.name.starts_with("vllm:estimated_") ||
                         spec.name.ends_with("_time");
    CHECK((spec.number == CounterNumber::kReal) == is_real);
  }
}

TEST_CASE(
    "Catalogue: the library's own families have its prefix and their own "
    "condition",
    "[catalogue]") {
  for (const MetricSpec& spec : catalogue()) {
    CAPTURE(std::string(spec.name));
    const bool is_own = spec.name.starts_with("vllm_metrics_");
    CHECK(is_own != is_vllms(spec));
    CHECK(is_own == (spec.condition == Condition::kSelfMetrics ||
                     spec.condition == Condition::kHttpEndpoint ||
                     spec.condition == Condition::kOtlpExporter));
  }
}

TEST_CASE("Catalogue: every entry is found by id and by name, once",
          "[catalogue]") {
  CHECK(catalogue().size() == kMetricCount);
  std::set<std::string> names;
  for (std::size_t i = 0; i < kMetricCount; ++i) {
    const MetricSpec& spec = catalogue()[i];
    CAPTURE(std::string(spec.name));
    CHECK(&spec_of(static_cast<MetricId>(i)) == &spec);
    CHECK(static_cast<std::size_t>(spec.id) == i);
    CHECK(find_spec(spec.name) == &spec);
    CHECK(names.insert(std::string(spec.name)).second);
  }
  CHECK(find_spec("vllm:gpu_cache_usage_perc") == nullptr);
  CHECK(find_spec("") == nullptr);
}

TEST_CASE("Catalogue: every entry's names can be registered", "[catalogue]") {
  for (const MetricSpec& spec : catalogue()) {
    CAPTURE(std::string(spec.name));
    const Family family{.name = std::string(spec.name), .kind = spec.kind};
    CHECK(check_family(family).ok());
    CHECK(normalized(family).name == spec.name);
    Labels labels;
    for (const auto& name : label_names(spec)) labels.push_back({name, "v"});
    CHECK(check_labels(spec.name, labels, "le").ok());
    std::set<std::string> values;
    for (const auto value : spec.extra_label.values) {
      CHECK_FALSE(value.empty());
      CHECK(values.insert(std::string(value)).second);
    }
  }
}

TEST_CASE("Catalogue: a help text is one sentence of its own", "[catalogue]") {
  std::set<std::string> helps;
  for (const MetricSpec& spec : catalogue()) {
    const std::string help(spec.help);
    CAPTURE(std::string(spec.name), help);
    REQUIRE_FALSE(help.empty());
    CHECK(helps.insert(help).second);
    CHECK(help.back() == '.');
    CHECK(std::isspace(static_cast<unsigned char>(help.front())) == 0);
    CHECK(std::islower(static_cast<unsigned char>(help.front())) == 0);
    CHECK(help.find('\n') == std::string::npos);
    CHECK(help.find("  ") == std::string::npos);
    // A full stop, then a capital letter: a second sentence.
    for (std::size_t i = 0; i + 2 < help.size(); ++i) {
      const bool ends =
          help[i] == '.' && help[i + 1] == ' ' &&
          std::isupper(static_cast<unsigned char>(help[i + 2])) != 0;
      CHECK_FALSE(ends);
    }
    CHECK_FALSE(spec.unit.empty());
  }
}

TEST_CASE("Catalogue: the unit is in the name of what is measured in seconds",
          "[catalogue]") {
  for (const MetricSpec& spec : catalogue()) {
    CAPTURE(std::string(spec.name));
    // Three names are vLLM's, against the rule.
    const bool says_so = spec.name.ends_with("_seconds") ||
                         (spec.name.starts_with("vllm:kv_offload_") &&
                          spec.name.ends_with("_time"));
    CHECK((spec.unit == "seconds") == says_so);
  }
}

TEST_CASE("one_two_five_buckets: rise up to and including the maximum",
          "[catalogue]") {
  using List = std::vector<double>;
  using Case = std::pair<std::int64_t, List>;
  const auto [max, expected] = GENERATE(values<Case>({
      {std::numeric_limits<std::int64_t>::min(), {}},
      {-1, {}},
      {0, {}},
      {1, {1}},
      {2, {1, 2}},
      {4, {1, 2}},
      {5, {1, 2, 5}},
      {9, {1, 2, 5}},
      {10, {1, 2, 5, 10}},
      {19, {1, 2, 5, 10}},
      {499, {1, 2, 5, 10, 20, 50, 100, 200}},
      {5000, {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000}},
      {8192, {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000}},
      {10000, {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000}},
  }));
  CHECK(one_two_five_buckets(max) == expected);
}

TEST_CASE("one_two_five_buckets: end at the largest integer without overflow",
          "[catalogue]") {
  const auto bounds =
      one_two_five_buckets(std::numeric_limits<std::int64_t>::max());
  CHECK(bounds.size() == 57);
  CHECK(bounds.back() == 5e18);
  CHECK(std::ranges::is_sorted(bounds));
  CHECK(BucketBounds::create(bounds).has_value());
}

}  // namespace
}  // namespace vllm_metrics
