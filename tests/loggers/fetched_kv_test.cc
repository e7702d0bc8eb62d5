#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/loggers/surroundings.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"

namespace vllm_metrics {
namespace {

using namespace vllm_metrics::testing;

TEST_CASE("page: cached prompt tokens by where they were, since 0.32",
          "[loggers]") {
  const Surroundings around;
  StatLoggerOptions options = around.options();
  options.wire_version = {0, GENERATE(31, 32)};
  const bool shown = options.wire_version.minor == 32;
  const auto manager = *StatLoggerManager::create(options);
  IterationStats iteration;
  iteration.prompt_token_stats.update({.num_prompt_tokens = 100,
                                       .num_local_cached_tokens = 16,
                                       .num_external_cached_tokens = 80,
                                       .num_host_cached_tokens = 32,
                                       .num_p2p_cached_tokens = 24,
                                       .num_disk_cached_tokens = 8});
  manager->record(nullptr, &iteration);
  const std::string page = around.page();
  for (const auto& [source, tokens] :
       std::vector<std::pair<std::string, std::string>>{
           {"device", "16.0"},
           {"host", "32.0"},
           {"p2p", "24.0"},
           {"disk", "8.0"},
           {"external_unspecified", "16.0"}}) {
    CAPTURE(source);
    CHECK(value(page,
                "vllm:prompt_tokens_cached_by_source_total{engine=\"0\","
                "model_name=\"m\",source=\"" +
                    source + "\"}") == (shown ? tokens : "absent"));
  }
}

TEST_CASE("page: requests whose KV comes from elsewhere, since 0.32",
          "[loggers]") {
  const Surroundings around;
  StatLoggerOptions options = around.options();
  options.wire_version = {0, GENERATE(31, 32)};
  const bool shown = options.wire_version.minor == 32;
  const auto manager = *StatLoggerManager::create(options);
  SchedulerStats scheduler;
  scheduler.kv_fetch_stages = {
      .waiting_to_start = 3, .in_progress = 2, .completed_waiting = 1};
  manager->record(&scheduler, nullptr);
  const auto at = [&](const std::string& stage) {
    return value(around.page(),
                 "vllm:num_requests_kv_fetch_by_stage{engine=\"0\","
                 "model_name=\"m\",stage=\"" +
                     stage + "\"}");
  };
  CHECK(at("waiting_to_start") == (shown ? "3.0" : "absent"));
  CHECK(at("in_progress") == (shown ? "2.0" : "absent"));
  CHECK(at("completed_waiting") == (shown ? "1.0" : "absent"));
  scheduler.kv_fetch_stages = {};
  manager->record(&scheduler, nullptr);
  CHECK(at("in_progress") == (shown ? "0.0" : "absent"));
}

}  // namespace
}  // namespace vllm_metrics
