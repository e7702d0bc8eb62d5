#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "tests/allocation_counter.h"
#include "tests/loggers/surroundings.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"
#include "vllm_metrics/registry/snapshot.h"

namespace vllm_metrics {
namespace {

using namespace vllm_metrics::testing;
using Lines = std::vector<std::string>;
using Names = std::vector<std::string>;

constexpr double kStart = 1'700'000'000.0;  // of ManualClock

struct LoraSetup {
  int label_sets = 1;
  bool strict = false;
  std::vector<int> engine_indexes = {0};
};

// Engines whose scheduler says which adapters wait and run.
class LoraEngines : public Surroundings {
 public:
  explicit LoraEngines(const LoraSetup& setup = {}) {
    StatLoggerOptions given = options();
    given.max_loras = 2;
    given.lora_label_sets = setup.label_sets;
    given.lora_strict = setup.strict;
    given.engine_indexes = setup.engine_indexes;
    manager_ = *StatLoggerManager::create(std::move(given));
  }

  void record(const Names& running, const Names& waiting, int engine = 0) {
    SchedulerStats scheduler;
    for (const std::string& name : running)
      scheduler.running_lora_adapters.push_back({name, 1});
    for (const std::string& name : waiting)
      scheduler.waiting_lora_adapters.push_back({name, 1});
    record(scheduler, engine);
  }
  void record(const SchedulerStats& scheduler, int engine = 0) {
    manager_->record(&scheduler, nullptr, nullptr, engine);
  }

  Lines infos() const {
    Lines found;
    std::istringstream lines(page());
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("vllm:lora_requests_info{")) found.push_back(line);
    }
    return found;
  }

 private:
  std::unique_ptr<StatLoggerManager> manager_;
};

std::string info(const std::string& running, const std::string& waiting,
                 const std::string& value) {
  return "vllm:lora_requests_info{max_lora=\"2\",running_lora_adapters=\"" +
         running + "\",waiting_lora_adapters=\"" + waiting + "\"} " + value;
}

TEST_CASE("lora info: nothing is shown before the first step", "[loggers]") {
  LoraEngines engines;
  CHECK(engines.infos().empty());
}

// A series for every combination there ever was: readers had to look for the
// newest, and the page grew for ever.
TEST_CASE("lora info: one series, the newest, whatever there was before",
          "[loggers]") {
  LoraEngines engines;
  engines.record({}, {});
  engines.clock->advance(1);
  engines.record({"a"}, {});
  CHECK(engines.infos() == Lines{info("a", "", "1.700000001e+09")});
  engines.clock->advance(1);
  engines.record({"a"}, {"b"});
  CHECK(engines.infos() == Lines{info("a", "b", "1.700000002e+09")});
  engines.clock->advance(1);
  engines.record({}, {});
  CHECK(engines.infos() == Lines{info("", "", "1.700000003e+09")});
  engines.clock->advance(0.5);
  engines.record({}, {});
  CHECK(engines.infos() == Lines{info("", "", "1.7000000035e+09")});
}

TEST_CASE("lora info: names are joined in the order given", "[loggers]") {
  LoraEngines engines;
  engines.record({"b", "a"}, {"c", "b", "a"});
  CHECK(engines.infos() == Lines{info("b,a", "c,b,a", "1.7e+09")});
}

TEST_CASE("lora info: older label sets stay with the time they were last seen",
          "[loggers]") {
  LoraEngines engines({.label_sets = 3});
  for (const char* name : {"a", "b", "c", "d"}) {
    engines.record({name}, {});
    engines.clock->advance(0.25);
    engines.record({name}, {});
    engines.clock->advance(0.75);
  }
  CHECK(engines.infos() == Lines{info("b", "", "1.70000000125e+09"),
                                 info("c", "", "1.70000000225e+09"),
                                 info("d", "", "1.70000000325e+09")});
  // One that comes again is not there twice.
  engines.record({"b"}, {});
  CHECK(engines.infos() == Lines{info("c", "", "1.70000000225e+09"),
                                 info("d", "", "1.70000000325e+09"),
                                 info("b", "", "1.700000004e+09")});
}

TEST_CASE(
    "lora info: of 10,000 random combinations the newest 64 are shown, and "
    "the last has the largest value",
    "[loggers]") {
  LoraEngines engines({.label_sets = 64});
  std::minstd_rand random(7);
  const auto some_names = [&random] {
    Names names;
    for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
      if (random() % 2 == 0) names.emplace_back(name);
    }
    return names;
  };
  Names running;
  Names waiting;
  for (int i = 0; i < 10'000; ++i) {
    running = some_names();
    waiting = some_names();
    engines.clock->advance(0.001);
    engines.record(running, waiting);
  }

  Snapshot snapshot;
  engines.registry->snapshot(snapshot);
  const auto family = std::ranges::find(
      snapshot.schema->families, "vllm:lora_requests_info",
      [](const SchemaFamily& known) { return known.family.name; });
  REQUIRE(family != snapshot.schema->families.end());
  REQUIRE(family->series.size() == 64);
  const auto joined = [](const Names& names) {
    std::string all;
    for (const auto& name : names) all += (all.empty() ? "" : ",") + name;
    return all;
  };
  const Labels last{{"max_lora", "2"},
                    {"running_lora_adapters", joined(running)},
                    {"waiting_lora_adapters", joined(waiting)}};
  std::optional<double> of_last;
  double largest_of_others = 0.0;
  for (const Series& series : family->series) {
    const double value = snapshot.real(series);
    CHECK(value >= kStart + 9.9);
    if (series.labels == last) {
      of_last = value;
    } else {
      largest_of_others = std::max(largest_of_others, value);
    }
  }
  REQUIRE(of_last.has_value());
  CHECK(*of_last > largest_of_others);
}

TEST_CASE("lora info: equal sets of several engines are one, the newest time",
          "[loggers]") {
  LoraEngines engines({.engine_indexes = {0, 1, 2}});
  CHECK(engines.log->lines ==
        Lines{"WARNING vllm:lora_requests_info prometheus metrics may be "
              "incorrect/misleading with data parallel deployments."});
  engines.record({"a"}, {}, 0);
  engines.clock->advance(2);
  engines.record({"a"}, {}, 1);
  engines.clock->advance(-1);  // a clock that was set back
  engines.record({"a"}, {}, 2);
  CHECK(engines.infos() == Lines{info("a", "", "1.700000002e+09")});

  engines.record({"b"}, {}, 1);
  CHECK(engines.infos() == Lines{info("a", "", "1.700000001e+09"),
                                 info("b", "", "1.700000001e+09")});
}

TEST_CASE("lora info: strictly, an adapter is listed where a request of it is",
          "[loggers]") {
  const bool strict = GENERATE(false, true);
  LoraEngines engines({.strict = strict});
  LoraRequestStates states;
  using Phase = LoraRequestStates::Phase;
  states.move("runs", Phase::kNone, Phase::kRunning);
  states.move("waits", Phase::kNone, Phase::kWaiting);
  states.move("both", Phase::kNone, Phase::kWaiting);
  states.move("both", Phase::kNone, Phase::kRunning);
  SchedulerStats scheduler;
  states.update(scheduler);
  engines.record(scheduler);
  CHECK(engines.infos() ==
        (strict
             ? Lines{info("runs,both", "waits,both", "1.7e+09")}
             : Lines{info("runs,waits,both", "runs,waits,both", "1.7e+09")}));
}

TEST_CASE("lora info: hostile names are escaped, and are one label each",
          "[loggers]") {
  LoraEngines engines;
  engines.record({"say \"hi\"\n# TYPE x\\", "\xC3\x28", ""}, {"{},=", "é"});
  CHECK(engines.infos() ==
        Lines{info("say \\\"hi\\\"\\n# TYPE x\\\\,\xEF\xBF\xBD(,", "{},=,é",
                   "1.7e+09")});
  const std::string long_name(100'000, 'x');
  engines.record({long_name}, {});
  CHECK(engines.infos() == Lines{info(long_name, "", "1.7e+09")});
}

TEST_CASE("lora info: without LoRA it is not there", "[loggers]") {
  const Surroundings around;
  const auto manager = *StatLoggerManager::create(around.options());
  SchedulerStats scheduler;
  scheduler.running_lora_adapters = {{"a", 1}};
  manager->record(&scheduler, nullptr);
  CHECK(around.page().find("lora") == std::string::npos);
}

TEST_CASE("lora info: a step that changes the adapters allocates nothing",
          "[loggers]") {
  LoraEngines engines({.label_sets = GENERATE(1, 3)});
  const auto states = [] {
    std::vector<SchedulerStats> made(5);
    for (std::size_t i = 0; i < made.size(); ++i) {
      made[i].running_lora_adapters.assign(i, {"an adapter of some length", 1});
      made[i].waiting_lora_adapters.assign(made.size() - i, {"another one", 1});
    }
    return made;
  }();
  const auto rounds = [&](int count) {
    for (int i = 0; i < count; ++i) {
      for (const SchedulerStats& scheduler : states) {
        engines.record(scheduler);
      }
    }
  };
  rounds(10);
  CHECK(allocations_of([&] { rounds(100); }) == 0);
}

}  // namespace
}  // namespace vllm_metrics
