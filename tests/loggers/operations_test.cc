#include <catch2/catch.hpp>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/allocation_counter.h"
#include "tests/loggers/surroundings.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"

namespace vllm_metrics {
namespace {

using namespace vllm_metrics::testing;

const std::string kSleepMode = "vllm:sleep_mode_operation_duration_seconds";
const std::string kWeights = "vllm:rl_weight_update_operation_duration_seconds";

std::string count(const std::string& page, const std::string& family,
                  const std::string& operation) {
  return value(page, family + "_count{operation=\"" + operation + "\"}");
}

StatLoggerOptions of_release(const Surroundings& around, WireVersion release) {
  StatLoggerOptions options = around.options();
  options.wire_version = release;
  options.engine_indexes = {0, 1};
  return options;
}

TEST_CASE("operations: each has its histogram, once for all engines",
          "[loggers]") {
  const Surroundings around;
  const auto manager = *StatLoggerManager::create(of_release(around, {0, 32}));
  const auto [operation, family, label] =
      GENERATE(table<EngineOperation, std::string, std::string>(
          {{EngineOperation::kSleep, kSleepMode, "sleep"},
           {EngineOperation::kReleaseKvCacheMemory, kSleepMode,
            "release_kv_cache_memory"},
           {EngineOperation::kWake, kSleepMode, "wake"},
           {EngineOperation::kWeightInit, kWeights, "init"},
           {EngineOperation::kWeightStart, kWeights, "start"},
           {EngineOperation::kWeightStartDraft, kWeights, "start_draft"},
           {EngineOperation::kWeightUpdate, kWeights, "update"},
           {EngineOperation::kWeightFinish, kWeights, "finish"}}));
  CAPTURE(label);
  CHECK(count(around.page(), family, label) == "0.0");
  manager->record_operation(operation, 2.5);
  const std::string page = around.page();
  CHECK(count(page, family, label) == "1.0");
  CHECK(value(page, family + "_sum{operation=\"" + label + "\"}") == "2.5");
  CHECK(value(page, family + "_bucket{le=\"1.0\",operation=\"" + label +
                        "\"}") == "0.0");
  CHECK(value(page, family + "_bucket{le=\"10.0\",operation=\"" + label +
                        "\"}") == "1.0");
}

TEST_CASE("operations: an older release has none, and the call does no harm",
          "[loggers]") {
  const Surroundings around;
  const auto manager = *StatLoggerManager::create(of_release(around, {0, 31}));
  manager->record_operation(EngineOperation::kWake, 1.0);
  CHECK(around.page().find("operation=") == std::string::npos);
}

TEST_CASE("operations: no number is no time, and bounds can be replaced",
          "[loggers]") {
  const Surroundings around;
  StatLoggerOptions options = of_release(around, {0, 32});
  options.buckets = {{kSleepMode, {0.5, 4.0}}};
  const auto manager = *StatLoggerManager::create(options);
  manager->record_operation(EngineOperation::kWake,
                            std::numeric_limits<double>::quiet_NaN());
  manager->record_operation(EngineOperation::kWake, 3.0);
  manager->record_operation(static_cast<EngineOperation>(99), 3.0);
  const std::string page = around.page();
  CHECK(count(page, kSleepMode, "wake") == "1.0");
  CHECK(value(page, kSleepMode + "_bucket{le=\"4.0\",operation=\"wake\"}") ==
        "1.0");
}

TEST_CASE("operations: of two managers on one page the first has them",
          "[loggers]") {
  const Surroundings around;
  const auto first = *StatLoggerManager::create(of_release(around, {0, 32}));
  StatLoggerOptions options = of_release(around, {0, 32});
  options.model_name = "n";
  const auto second = *StatLoggerManager::create(options);
  CHECK(around.log->lines.back().find(kWeights) != std::string::npos);
  first->record_operation(EngineOperation::kSleep, 1.0);
  second->record_operation(EngineOperation::kSleep, 1.0);
  CHECK(count(around.page(), kSleepMode, "sleep") == "1.0");
}

TEST_CASE("operations: from many threads, none is lost, nothing is allocated",
          "[loggers]") {
  const Surroundings around;
  const auto manager = *StatLoggerManager::create(of_release(around, {0, 32}));
  const auto update = [&] {
    for (int i = 0; i < 1000; ++i)
      manager->record_operation(EngineOperation::kWeightUpdate, 1.0);
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(update);
  for (std::thread& thread : threads) thread.join();
  CHECK(count(around.page(), kWeights, "update") == "4000.0");
  CHECK(allocations_of(update) == 0);
}

}  // namespace
}  // namespace vllm_metrics
