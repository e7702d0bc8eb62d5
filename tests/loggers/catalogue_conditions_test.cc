#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/loggers/surroundings.h"
#include "vllm_metrics/catalogue/catalogue.h"
#include "vllm_metrics/loggers/mooncake_store_metrics.h"
#include "vllm_metrics/loggers/nixl_connector_metrics.h"
#include "vllm_metrics/loggers/offloading_connector_metrics.h"
#include "vllm_metrics/loggers/simple_offload_connector_metrics.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"
#include "vllm_metrics/registry/snapshot.h"
#include "vllm_metrics/stats/nixl_stats.h"

// Every family that vLLM exposes, held against the page: there under its
// condition, absent without it, with its labels and their values.
namespace vllm_metrics {
namespace {

using namespace vllm_metrics::testing;
using nlohmann::json;
using Names = std::vector<std::string>;

constexpr std::int64_t kSpecTokens = 3;

json vllm_families() {
  std::ifstream file(VLLM_METRICS_TEST_DATA "/catalogue/vllm_families.json");
  REQUIRE(file.is_open());
  return json::parse(file).at("families");
}

// The conditions of the facts that an option turns on.
const std::map<std::string, std::function<void(StatLoggerOptions&)>>&
switches() {
  static const std::map<std::string, std::function<void(StatLoggerOptions&)>>
      kSwitches{
          {"nan_check", [](auto& o) { o.compute_nans_in_logits = true; }},
          {"kv_cache_metrics", [](auto& o) { o.kv_cache_metrics = true; }},
          {"lora", [](auto& o) { o.max_loras = 4; }},
          {"speculative",
           [](auto& o) { o.num_speculative_tokens = kSpecTokens; }},
          {"diffusion", [](auto& o) { o.is_diffusion = true; }},
          {"nixl",
           [](auto& o) {
             o.kv_connector = std::make_shared<NixlConnectorMetrics>();
           }},
          {"offloading",
           [](auto& o) {
             o.kv_connector = std::make_shared<OffloadingConnectorMetrics>(
                 OffloadingSetup{.store_threshold = 2});
           }},
          {"mooncake_store",
           [](auto& o) {
             o.kv_connector = std::make_shared<MooncakeStoreMetrics>();
           }},
          {"simple_offload",
           [](auto& o) {
             o.kv_connector = std::make_shared<SimpleOffloadConnectorMetrics>(
                 SimpleOffloadSetup{.lazy_offload = true,
                                    .capacity_blocks = 512});
           }},
      };
  return kSwitches;
}

// A page of two engines with some of the conditions met.
class Page {
 public:
  explicit Page(const std::set<std::string>& conditions,
                WireVersion wire = {0, 32}) {
    StatLoggerOptions options = around_.options();
    options.engine_indexes = {0, 3};
    options.wire_version = wire;
    options.cache_config = {{"block_size", "16"}};
    for (const std::string& condition : conditions) {
      const auto found = switches().find(condition);
      if (found != switches().end()) found->second(options);
    }
    manager_ = *StatLoggerManager::create(options);
    if (conditions.count("engine_initialized") != 0) {
      manager_->log_engine_initialized();
    }
    record_everything();
    around_.registry->snapshot(snapshot_);
  }

  const SchemaFamily* find(const std::string& name) const {
    const auto& families = snapshot_.schema->families;
    const auto found = std::ranges::find(
        families, name,
        [](const SchemaFamily& family) { return family.family.name; });
    return found != families.end() && !found->series.empty() ? &*found
                                                             : nullptr;
  }

  Names vllm_names() const {
    Names names;
    for (const SchemaFamily& family : snapshot_.schema->families) {
      if (family.family.name.starts_with("vllm:") && !family.series.empty()) {
        names.push_back(family.family.name);
      }
    }
    std::ranges::sort(names);
    return names;
  }

 private:
  // The engines report every feature, configured or not.
  void record_everything() {
    NixlStats transfers;
    transfers.record_transfer(1000, 10, 4096, 1);
    SchedulerStats scheduler;
    scheduler.kv_connector_stats = &transfers;
    scheduler.connector_prefix_cache_stats.emplace();
    scheduler.kv_cache_eviction_events.emplace_back();
    scheduler.running_lora_adapters = {{"a", 1}};
    scheduler.perf_stats = PerfStats{1, 1, 1};
    auto& drafts = scheduler.spec_decoding_stats.emplace();
    drafts.num_spec_tokens = kSpecTokens;
    drafts.observe_draft(3, 2);
    const IterationStats iteration;
    const MultiModalCacheStats mm_cache;
    for (const int engine : {0, 3}) {
      manager_->record(&scheduler, &iteration, &mm_cache, engine);
    }
  }

  Surroundings around_;
  std::unique_ptr<StatLoggerManager> manager_;
  Snapshot snapshot_;
};

const std::set<std::string> kConnectors{"nixl", "offloading", "mooncake_store",
                                        "simple_offload"};

// An engine has one connector.
std::set<std::string> all_conditions(const std::string& connector) {
  std::set<std::string> all{"engine_initialized", connector};
  for (const auto& [name, turn_on] : switches()) {
    if (!kConnectors.contains(name)) all.insert(name);
  }
  return all;
}

bool is_of_another_connector(const json& facts, const std::string& connector) {
  const std::string when = facts.at("when");
  return kConnectors.contains(when) && when != connector;
}

// Families that vLLM's facts do not have, for example of later releases, are
// none of these tests' business.
Names known_names(const Page& page) {
  Names names;
  for (const json& facts : vllm_families()) {
    if (page.find(facts.at("name")) != nullptr) {
      names.push_back(facts.at("name"));
    }
  }
  std::ranges::sort(names);
  return names;
}

Names names_where(const std::function<bool(const json&)>& wanted) {
  Names names;
  for (const json& facts : vllm_families()) {
    if (wanted(facts)) names.push_back(facts.at("name"));
  }
  std::ranges::sort(names);
  return names;
}

// The values that `label` has in a family's series, sorted, each once.
std::set<std::string> values_of(const SchemaFamily& family,
                                const std::string& label) {
  std::set<std::string> values;
  for (const Series& series : family.series) {
    for (const Label& known : series.labels) {
      if (known.name == label) values.insert(known.value);
    }
  }
  return values;
}

std::set<std::string> expected_values(const json& facts,
                                      const std::string& label) {
  if (label == "model_name") return {"m"};
  if (label == "engine") return {"0", "3"};
  if (label == "max_lora") return {"4"};
  if (label == "running_lora_adapters") return {"a"};
  if (label == "waiting_lora_adapters") return {""};
  if (label == "position") return {"0", "1", "2"};
  return facts.at("label_values").at(label).get<std::set<std::string>>();
}

TEST_CASE("catalogue: a family is on the page under its condition alone",
          "[loggers]") {
  std::set<std::string> conditions;
  for (const json& facts : vllm_families()) conditions.insert(facts.at("when"));
  // The facts and this test speak of the same conditions.
  std::set<std::string> known{"always", "engine_initialized"};
  for (const auto& [name, turn_on] : switches()) known.insert(name);
  REQUIRE(conditions == known);

  std::size_t seen = 0;
  for (const std::string& condition : conditions) {
    CAPTURE(condition);
    const Page page({condition});
    const auto on_page = [&](const json& facts) {
      return facts.at("when") == "always" || facts.at("when") == condition;
    };
    CHECK(known_names(page) == names_where(on_page));
    if (condition != "always") {
      seen +=
          names_where(on_page).size() - names_where([](const json& facts) {
                                          return facts.at("when") == "always";
                                        }).size();
    }
  }
  const auto always = names_where(
      [](const json& facts) { return facts.at("when") == "always"; });
  CHECK(seen + always.size() == vllm_families().size());
}

TEST_CASE("catalogue: a diffusion model has its names in place of drafts",
          "[loggers]") {
  const Page page(all_conditions("nixl"));
  CHECK(known_names(page) == names_where([](const json& facts) {
          return facts.at("when") != "speculative" &&
                 !is_of_another_connector(facts, "nixl");
        }));
}

TEST_CASE("catalogue: a family has exactly its labels and their values",
          "[loggers]") {
  const auto connector = GENERATE(from_range(kConnectors));
  CAPTURE(connector);
  auto conditions = all_conditions(connector);
  const bool is_diffusion = GENERATE(false, true);
  if (!is_diffusion) conditions.erase("diffusion");
  const Page page(conditions);
  std::size_t checked = 0;
  for (const json& facts : vllm_families()) {
    const SchemaFamily* family = page.find(facts.at("name"));
    if (family == nullptr) continue;
    const std::string name = facts.at("name");
    CAPTURE(name);
    ++checked;
    CHECK(std::string(name_of(family->family.kind)) == facts.at("type"));
    Names labels = facts.at("labels").get<Names>();
    // Every cache setting is one.
    if (name == "vllm:cache_config_info") labels.push_back("block_size");
    std::ranges::sort(labels);
    std::size_t series = 1;
    for (const std::string& label : labels) {
      if (label == "block_size") continue;
      const auto expected = expected_values(facts, label);
      CHECK(values_of(*family, label) == expected);
      series *= expected.size();
    }
    CHECK(family->series.size() == series);
    for (const Series& one : family->series) {
      Names of_series;
      for (const Label& label : one.labels) of_series.push_back(label.name);
      std::ranges::sort(of_series);
      CHECK(of_series == labels);
    }
  }
  CHECK(checked == names_where([&](const json& facts) {
                     return facts.at("when") !=
                                (is_diffusion ? "speculative" : "diffusion") &&
                            !is_of_another_connector(facts, connector);
                   }).size());
}

TEST_CASE("catalogue: a histogram has its bounds on the page", "[loggers]") {
  const auto connector = GENERATE(from_range(kConnectors));
  const Page page(all_conditions(connector));
  std::size_t checked = 0;
  for (const json& facts : vllm_families()) {
    if (facts.at("type") != "histogram" ||
        is_of_another_connector(facts, connector))
      continue;
    const std::string name = facts.at("name");
    CAPTURE(name);
    const SchemaFamily* family = page.find(name);
    REQUIRE(family != nullptr);
    ++checked;
    const auto bounds = family->series[0].bounds->values();
    const std::vector<double> expected =
        facts.at("buckets") == "one_two_five"
            ? one_two_five_buckets(8192)
            : facts.at("buckets").get<std::vector<double>>();
    CHECK(std::vector<double>(bounds.begin(), bounds.end()) == expected);
  }
  CHECK(checked >= 19);
}

TEST_CASE("catalogue: an older release lacks what came later", "[loggers]") {
  const auto connector = GENERATE(from_range(kConnectors));
  const Page page(all_conditions(connector), {0, 27});
  CHECK(known_names(page) == names_where([&](const json& facts) {
          return facts.at("when") != "speculative" &&
                 !is_of_another_connector(facts, connector) &&
                 !facts.contains("since");
        }));
}

TEST_CASE("catalogue: the page has no family that the catalogue has not",
          "[loggers]") {
  const auto connector = GENERATE(from_range(kConnectors));
  const Page page(all_conditions(connector));
  for (const std::string& name : page.vllm_names()) {
    CAPTURE(name);
    CHECK(find_spec(name) != nullptr);
  }
}

TEST_CASE(
    "catalogue: HELP of a deprecated family names its successor, no other "
    "says DEPRECATED",
    "[loggers]") {
  const Page page(all_conditions("offloading"));
  std::size_t deprecated = 0;
  for (const json& facts : vllm_families()) {
    const std::string name = facts.at("name");
    const SchemaFamily* family = page.find(name);
    if (family == nullptr) continue;
    CAPTURE(name, family->family.help);
    const bool is_deprecated = facts.contains("deprecated");
    CHECK(family->family.help.starts_with(
              "DEPRECATED since 0.27, use vllm:kv_offload_") == is_deprecated);
    deprecated += is_deprecated ? 1U : 0U;
  }
  CHECK(deprecated == 3);
}

}  // namespace
}  // namespace vllm_metrics
