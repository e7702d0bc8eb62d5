#include "vllm_metrics/loggers/logging_stat_logger.h"

#include <catch2/catch.hpp>
#include <clocale>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tests/loggers/surroundings.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"

namespace vllm_metrics {
namespace {

using namespace vllm_metrics::testing;
using Lines = std::vector<std::string>;

struct Engine : Surroundings {
  Engine() { rebuild(options()); }

  void rebuild(const StatLoggerOptions& given) {
    logger = std::make_unique<LoggingStatLogger>(given, 0);
  }
  void record() { logger->record({0, &scheduler, &iteration, nullptr}); }
  void log_after(double seconds) {
    clock->advance(seconds);
    logger->log();
  }

  std::unique_ptr<LoggingStatLogger> logger;
  SchedulerStats scheduler;
  IterationStats iteration;
};

TEST_CASE("text record: a fresh engine shows zeros and divides by nothing",
          "[loggers]") {
  Engine engine;
  engine.log_after(10);
  engine.log_after(0);
  CHECK(engine.log->lines ==
        Lines(2,
              "DEBUG Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg "
              "generation throughput: 0.0 tokens/s, Running: 0 reqs, "
              "Waiting: 0 reqs, GPU KV cache usage: 0.0%, Prefix cache hit "
              "rate: 0.0%"));
  CHECK(engine.log->engines == std::vector<int>{0, 0});
  CHECK(engine.log->times == std::vector<double>(2, 1'700'000'010.0));
}

TEST_CASE("text record: the first quiet interval is still shown at INFO",
          "[loggers]") {
  Engine engine;
  const auto step = [&](std::int64_t computed, std::int64_t generated) {
    engine.iteration.reset(0);
    engine.iteration.prompt_token_stats.computed = computed;
    engine.iteration.num_generation_tokens = generated;
    engine.record();
  };
  step(100, 50);
  engine.log_after(10);
  engine.log_after(10);
  engine.log_after(10);
  step(0, 10);
  engine.log_after(10);
  engine.log_after(0);
  Lines heads;
  for (const std::string& line : engine.log->lines) {
    heads.push_back(line.substr(0, line.find(", Running")));
  }
  const std::string text = " Engine 000: Avg prompt throughput: ";
  const std::string next = " tokens/s, Avg generation throughput: ";
  CHECK(heads == Lines{"INFO" + text + "10.0" + next + "5.0 tokens/s",
                       "INFO" + text + "0.0" + next + "0.0 tokens/s",
                       "DEBUG" + text + "0.0" + next + "0.0 tokens/s",
                       "INFO" + text + "0.0" + next + "1.0 tokens/s",
                       "INFO" + text + "0.0" + next + "0.0 tokens/s"});
}

TEST_CASE("text record: prompt throughput counts computed tokens only",
          "[loggers]") {
  Engine engine;
  engine.iteration.prompt_token_stats.update(
      {.num_prompt_tokens = 312,
       .num_local_cached_tokens = 240,
       .num_external_cached_tokens = 56});
  engine.record();
  engine.log_after(10);
  CHECK(engine.log->lines.front().find("Avg prompt throughput: 1.6 tokens/s") !=
        std::string::npos);
}

TEST_CASE("text record: every optional field in its place", "[loggers]") {
  Engine engine;
  StatLoggerOptions given = engine.options();
  given.compute_nans_in_logits = true;
  engine.rebuild(given);
  engine.scheduler.num_running_reqs = 7;
  engine.scheduler.num_waiting_reqs = 2;
  engine.scheduler.num_skipped_waiting_reqs = 3;
  engine.scheduler.kv_cache_usage = 0.125;
  engine.scheduler.prefix_cache_stats.record(1000, 333, false);
  engine.scheduler.connector_prefix_cache_stats.emplace();
  engine.scheduler.connector_prefix_cache_stats->record(4, 1, false);
  MultiModalCacheStats mm_cache;
  mm_cache.requests = 1;
  mm_cache.queries = 3;
  mm_cache.hits = 2;
  engine.iteration.num_preempted_reqs = 4;
  engine.iteration.num_corrupted_reqs = 1;
  engine.logger->record({0, &engine.scheduler, &engine.iteration, &mm_cache});
  engine.log_after(1);
  engine.log_after(1);
  CHECK(engine.log->lines[0] ==
        "DEBUG Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation "
        "throughput: 0.0 tokens/s, Running: 7 reqs, Waiting: 5 reqs, Deferred: "
        "3 reqs, Preemptions: 4, GPU KV cache usage: 12.5%, Prefix cache hit "
        "rate: 33.3%, Corrupted: 1 reqs, External prefix cache hit rate: "
        "25.0%, MM cache hit rate: 66.7%");
  // The counts are the interval's; the windows stay.
  CHECK(engine.log->lines[1] ==
        "DEBUG Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation "
        "throughput: 0.0 tokens/s, Running: 7 reqs, Waiting: 5 reqs, Deferred: "
        "3 reqs, GPU KV cache usage: 12.5%, Prefix cache hit rate: 33.3%, "
        "Corrupted: 0 reqs, External prefix cache hit rate: 25.0%, MM cache "
        "hit rate: 66.7%");
}

TEST_CASE("text record: halves round to even, NaN has no sign", "[loggers]") {
  Engine engine;
  const auto [usage, expected] = GENERATE(table<double, std::string>(
      {{0.00125, "0.1%"},
       {0.00375, "0.4%"},
       {0.9996, "100.0%"},
       {std::numeric_limits<double>::quiet_NaN(), "nan%"},
       {-std::numeric_limits<double>::quiet_NaN(), "nan%"},
       {std::numeric_limits<double>::infinity(), "inf%"},
       {-std::numeric_limits<double>::infinity(), "-inf%"}}));
  engine.scheduler.kv_cache_usage = usage;
  engine.record();
  engine.log_after(1);
  CHECK(engine.log->lines.front().find("usage: " + expected + ",") !=
        std::string::npos);
}

TEST_CASE("text record: a state of zeros is shown as zeros", "[loggers]") {
  Engine engine;
  engine.scheduler.num_running_reqs = 106;
  engine.record();
  engine.scheduler = {};
  engine.logger->record({0, &engine.scheduler, nullptr, nullptr});
  engine.log_after(1);
  CHECK(engine.log->lines.front().find(
            "Running: 0 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.0%") !=
        std::string::npos);
}

TEST_CASE("text record: nothing is written below the sink's level",
          "[loggers]") {
  Engine engine;
  engine.log = std::make_shared<CapturedLog>(LogLevel::kInfo);
  engine.rebuild(engine.options());
  engine.log_after(1);
  engine.logger->log_engine_initialized();
  CHECK(engine.log->lines.empty());
}

TEST_CASE("text record: the process locale changes nothing", "[loggers]") {
  Engine engine;
  engine.scheduler.kv_cache_usage = 0.125;
  engine.iteration.num_generation_tokens = 12345678;
  engine.record();
  const std::string old = std::setlocale(LC_ALL, nullptr);
  std::setlocale(LC_ALL, "de_DE.UTF-8");
  engine.log_after(10);
  std::setlocale(LC_ALL, old.c_str());
  CHECK(engine.log->lines.front().find("1234567.8 tokens/s") !=
        std::string::npos);
  CHECK(engine.log->lines.front().find("usage: 12.5%") != std::string::npos);
}

TEST_CASE("aggregated record: an undeclared engine is warned of once",
          "[loggers]") {
  const Surroundings around;
  StatLoggerOptions given = around.options();
  given.engine_indexes = {0, 2};
  AggregatedLoggingStatLogger logger(given);
  SchedulerStats scheduler;
  scheduler.num_running_reqs = 3;
  scheduler.kv_cache_usage = 0.5;
  logger.record({2, &scheduler, nullptr, nullptr});
  logger.record({1, &scheduler, nullptr, nullptr});
  logger.record({1, &scheduler, nullptr, nullptr});
  around.clock->advance(1);
  logger.log();
  CHECK(around.log->lines ==
        Lines{"WARNING Unexpected engine_idx: 1",
              "DEBUG 2 Engines Aggregated: Avg prompt throughput: 0.0 "
              "tokens/s, Avg generation throughput: 0.0 tokens/s, Running: 3 "
              "reqs, Waiting: 0 reqs, GPU KV cache usage: 25.0%, Prefix cache "
              "hit rate: 0.0%"});
}

TEST_CASE("initialised record: a level and a text for each kind of logger",
          "[loggers]") {
  const Surroundings around;
  StatLoggerOptions given = around.options();
  given.engine_indexes = {0, 1, 2};
  given.num_gpu_blocks = 4096;
  LoggingStatLogger(given, 2).log_engine_initialized();
  AggregatedLoggingStatLogger(given).log_engine_initialized();
  given.num_gpu_blocks = 0;
  AggregatedLoggingStatLogger(given).log_engine_initialized();
  CHECK(around.log->lines ==
        Lines{"DEBUG Engine 002: vllm cache_config_info with initialization "
              "after num_gpu_blocks is: 4096",
              "INFO 3 Engines: vllm cache_config_info with initialization "
              "after num_gpu_blocks is: 4096"});
}

}  // namespace
}  // namespace vllm_metrics
