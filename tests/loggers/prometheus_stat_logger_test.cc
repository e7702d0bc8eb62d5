#include "vllm_metrics/loggers/prometheus_stat_logger.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/loggers/surroundings.h"
#include "vllm_metrics/catalogue/catalogue.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"

namespace vllm_metrics {
namespace {

using namespace vllm_metrics::testing;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// One engine with the Prometheus logger alone.
struct Engine : Surroundings {
  explicit Engine(StatLoggerOptions given) {
    given.default_loggers = false;
    auto made = StatLoggerManager::create(std::move(given));
    REQUIRE(made.ok());
    manager = *std::move(made);
    iteration.reset(clock->wall());
  }
  Engine() : Engine(Surroundings().options()) {}

  void record() { manager->record(&scheduler, &iteration); }
  std::string page() const {
    return std::string(TextFormat().render(*manager->registry()));
  }
  std::string sample(const std::string& name) const {
    return of_engine0(page(), name);
  }
  std::string rejected(const std::string& reason) const {
    return value(page(),
                 "vllm_metrics_rejected_samples_total{engine=\"0\","
                 "model_name=\"m\",reason=\"" +
                     reason + "\"}");
  }

  std::unique_ptr<StatLoggerManager> manager;
  SchedulerStats scheduler;
  IterationStats iteration;
};

StatLoggerOptions options() { return Surroundings().options(); }

TEST_CASE("page: every family is there with zeros before the first step",
          "[loggers]") {
  const Engine engine;
  const std::string page = engine.page();
  CHECK(of_engine0(page, "vllm:num_requests_running") == "0.0");
  CHECK(of_engine0(page, "vllm:generation_tokens_total") == "0.0");
  CHECK(bucket(page, "vllm:time_to_first_token_seconds", "+Inf") == "0.0");
  for (const auto reason : {"stop", "length", "abort", "error", "repetition"}) {
    CHECK(value(page,
                "vllm:request_success_total{engine=\"0\",finished_"
                "reason=\"" +
                    std::string(reason) + "\",model_name=\"m\"}") == "0.0");
  }
}

TEST_CASE("page: an aborted request feeds the same families as a normal end",
          "[loggers]") {
  Engine engine;
  std::vector<RequestStateStats> requests(5);
  for (RequestStateStats& request : requests) {
    request.arrival_time = engine.clock->wall() - 1.0;
    request.num_prompt_tokens = 602;
    const EngineCoreEvent events[] = {
        {EngineCoreEvent::Type::kQueued, 999.0},
        {EngineCoreEvent::Type::kScheduled, 999.5}};
    engine.iteration.update_from_output(
        {.num_new_tokens = 1,
         .events = events,
         .prefill_stats = PrefillStats{.num_prompt_tokens = 602}},
        1000.0, request);
  }
  engine.record();
  engine.iteration.reset(engine.clock->wall());
  for (RequestStateStats& request : requests) {
    engine.iteration.update_from_ended_request(FinishReason::kAbort, 1000.25,
                                               request);
  }
  engine.manager->record(nullptr, &engine.iteration);

  const std::string page = engine.page();
  CHECK(of_engine0(page, "vllm:prompt_tokens_total") == "3010.0");
  CHECK(value(page,
              "vllm:request_success_total{engine=\"0\",finished_reason="
              "\"abort\",model_name=\"m\"}") == "5.0");
  CHECK(of_engine0(page, "vllm:request_prompt_tokens_count") == "5.0");
  CHECK(of_engine0(page, "vllm:request_prompt_tokens_sum") == "3010.0");
  CHECK(of_engine0(page, "vllm:e2e_request_latency_seconds_count") == "5.0");
  CHECK(of_engine0(page, "vllm:request_queue_time_seconds_sum") == "2.5");
}

TEST_CASE("page: a request dropped without a trace feeds none of them",
          "[loggers]") {
  Engine engine;
  RequestStateStats request;
  engine.iteration.update_from_output({.num_new_tokens = 1}, 1000.0, request);
  drop_request(request);
  engine.record();
  CHECK(engine.sample("vllm:generation_tokens_total") == "1.0");
  CHECK(engine.sample("vllm:e2e_request_latency_seconds_count") == "0.0");
}

TEST_CASE("page: an unset stamp leaves its phase out and is counted",
          "[loggers]") {
  Engine engine;
  RequestStateStats request;
  request.arrival_time = engine.clock->wall() - 3.0;

  SECTION("ended while waiting: it has queued until its end") {
    request.queued_ts = 998.0;
    engine.iteration.update_from_ended_request(FinishReason::kAbort, 1000.0,
                                               request);
    engine.record();
    CHECK(engine.sample("vllm:request_queue_time_seconds_sum") == "2.0");
    CHECK(engine.rejected("unset_timestamp") == "3.0");
  }
  SECTION("never queued: nothing but the whole is known") {
    engine.iteration.update_from_ended_request(FinishReason::kError, 1000.0,
                                               request);
    engine.record();
    CHECK(engine.sample("vllm:request_queue_time_seconds_count") == "0.0");
    CHECK(engine.rejected("unset_timestamp") == "4.0");
  }
  SECTION("scheduled, but without a token") {
    request.queued_ts = 998.0;
    request.scheduled_ts = 998.5;
    engine.iteration.update_from_finished_request(FinishReason::kError,
                                                  request);
    engine.record();
    CHECK(engine.sample("vllm:request_queue_time_seconds_sum") == "0.5");
    CHECK(engine.rejected("unset_timestamp") == "3.0");
  }
  CHECK(engine.sample("vllm:request_prefill_time_seconds_count") == "0.0");
  CHECK(engine.sample("vllm:request_inference_time_seconds_count") == "0.0");
  CHECK(engine.sample("vllm:request_decode_time_seconds_count") == "0.0");
  CHECK(engine.sample("vllm:e2e_request_latency_seconds_sum") == "3.0");
  CHECK(engine.sample("vllm:request_time_per_output_token_seconds_count") ==
        "1.0");
}

TEST_CASE("page: TPOT of fewer than two tokens is 0 and still a sample",
          "[loggers]") {
  Engine engine;
  RequestStateStats request;
  request.first_token_ts = 1.0;
  for (const auto& [tokens, decode] : {std::pair{1, 0.0}, {0, 0.0}, {5, 0.4}}) {
    request.num_generation_tokens = tokens;
    request.first_token_ts = 0.0;
    request.last_token_ts = decode;
    engine.iteration.update_from_finished_request(FinishReason::kStop, request);
  }
  engine.record();
  const std::string page = engine.page();
  const std::string family = "vllm:request_time_per_output_token_seconds";
  CHECK(bucket(page, family, "0.075") == "2.0");
  CHECK(bucket(page, family, "0.1") == "3.0");
  CHECK(bucket(page, family, "+Inf") == "3.0");
  CHECK(of_engine0(page, family + "_count") == "3.0");
  CHECK(of_engine0(page, family + "_sum") == "0.1");
}

TEST_CASE("page: one ITL sample per output, undivided", "[loggers]") {
  Engine engine;
  RequestStateStats request;
  request.is_prefilling = false;
  request.last_token_ts = 10.0;
  engine.iteration.update_from_output({.num_new_tokens = 3}, 10.06, request);
  engine.record();
  const std::string page = engine.page();
  const std::string family = "vllm:inter_token_latency_seconds";
  CHECK(of_engine0(page, family + "_count") == "1.0");
  CHECK(std::stod(of_engine0(page, family + "_sum")) == 10.06 - 10.0);
  CHECK(bucket(page, family, "0.05") == "0.0");
  CHECK(bucket(page, family, "0.075") == "1.0");
  CHECK(of_engine0(page, "vllm:generation_tokens_total") == "3.0");
}

TEST_CASE("page: a negative increment is dropped alone, and counted",
          "[loggers]") {
  Engine engine;
  engine.scheduler.num_running_reqs = 4;
  engine.iteration.prompt_token_stats = {.computed = 17,
                                         .local_cache_hit = -16,
                                         .external_kv_transfer = 80,
                                         .cached_tokens = 64,
                                         .total = 81};
  engine.record();
  const std::string page = engine.page();
  const auto by_source = [&](const std::string& source) {
    return value(page,
                 "vllm:prompt_tokens_by_source_total{engine=\"0\",model_name="
                 "\"m\",source=\"" +
                     source + "\"}");
  };
  CHECK(by_source("local_compute") == "17.0");
  CHECK(by_source("local_cache_hit") == "0.0");
  CHECK(by_source("external_kv_transfer") == "80.0");
  CHECK(of_engine0(page, "vllm:prompt_tokens_total") == "81.0");
  CHECK(of_engine0(page, "vllm:num_requests_running") == "4.0");
  CHECK(engine.rejected("negative_increment") == "1.0");
}

TEST_CASE("page: prompt tokens include the cached ones, sources add up",
          "[loggers]") {
  Engine engine;
  engine.iteration.prompt_token_stats.update(
      {.num_prompt_tokens = 312,
       .num_local_cached_tokens = 240,
       .num_external_cached_tokens = 56});
  engine.record();
  CHECK(engine.sample("vllm:prompt_tokens_total") == "312.0");
  CHECK(engine.sample("vllm:prompt_tokens_cached_total") == "296.0");
  CHECK(engine.sample("vllm:iteration_tokens_total_sum") == "16.0");
}

TEST_CASE("page: what is not finite is dropped, what is negative counts as 0",
          "[loggers]") {
  Engine engine;
  engine.iteration.time_to_first_tokens_iter = {0.05, kNan, kInf, -kInf, 0.5};
  engine.iteration.inter_token_latencies_iter = {0.02, -0.5, 0.03};
  FinishedRequestStats finished;
  finished.e2e_latency = -1.0;
  finished.queued_time = kNan;
  engine.iteration.finished_requests = {finished};
  engine.record();
  CHECK(engine.sample("vllm:time_to_first_token_seconds_count") == "2.0");
  CHECK(engine.sample("vllm:time_to_first_token_seconds_sum") == "0.55");
  CHECK(engine.sample("vllm:inter_token_latency_seconds_count") == "3.0");
  CHECK(engine.sample("vllm:inter_token_latency_seconds_sum") == "0.05");
  CHECK(engine.sample("vllm:e2e_request_latency_seconds_sum") == "0.0");
  CHECK(engine.sample("vllm:request_queue_time_seconds_count") == "0.0");
  CHECK(engine.rejected("not_finite") == "4.0");
  CHECK(engine.rejected("negative_observation") == "2.0");
}

TEST_CASE("page: counters of tokens stay exact past 2^53", "[loggers]") {
  Engine engine;
  engine.iteration.num_generation_tokens = std::int64_t{1} << 53;
  engine.record();
  engine.iteration.num_generation_tokens = 1;
  engine.record();
  engine.record();
  Snapshot snapshot;
  engine.manager->registry()->snapshot(snapshot);
  for (const SchemaFamily& family : snapshot.schema->families) {
    if (family.family.name != "vllm:generation_tokens") continue;
    CHECK(snapshot.integer(family.series.front()) ==
          (std::uint64_t{1} << 53) + 2);
  }
  CHECK(engine.sample("vllm:generation_tokens_total") ==
        "9.007199254740994e+15");
}

TEST_CASE("page: a missing part of a step leaves its families alone",
          "[loggers]") {
  Engine engine;
  engine.scheduler.num_running_reqs = 106;
  engine.scheduler.num_waiting_reqs = 10;
  engine.scheduler.num_skipped_waiting_reqs = 5;
  engine.scheduler.kv_cache_usage = 0.904;
  engine.record();
  engine.iteration.num_generation_tokens = 1;
  engine.manager->record(nullptr, &engine.iteration);
  CHECK(engine.sample("vllm:num_requests_running") == "106.0");
  CHECK(engine.sample("vllm:num_requests_waiting") == "15.0");
  CHECK(engine.sample("vllm:kv_cache_usage_perc") == "0.904");

  engine.scheduler = {};
  engine.manager->record(&engine.scheduler, nullptr);
  CHECK(engine.sample("vllm:num_requests_running") == "0.0");
  CHECK(engine.sample("vllm:num_requests_waiting") == "0.0");
  CHECK(engine.sample("vllm:kv_cache_usage_perc") == "0.0");
  CHECK(engine.sample("vllm:iteration_tokens_total_count") == "2.0");
}

TEST_CASE("page: optional caches and perf stats count when they are there",
          "[loggers]") {
  Engine engine;
  engine.scheduler.connector_prefix_cache_stats.emplace();
  engine.scheduler.connector_prefix_cache_stats->record(100, 60, false);
  engine.scheduler.connector_prefix_cache_stats->record(50, 50, true);
  engine.scheduler.prefix_cache_stats.record(200, 20, false);
  engine.scheduler.perf_stats = PerfStats{1.5e12, 2.5, 0.5};
  MultiModalCacheStats mm_cache;
  mm_cache.queries = 8;
  mm_cache.hits = 3;
  engine.manager->record(&engine.scheduler, nullptr, &mm_cache);
  CHECK(engine.sample("vllm:external_prefix_cache_queries_total") == "100.0");
  CHECK(engine.sample("vllm:external_prefix_cache_hits_total") == "60.0");
  CHECK(engine.sample("vllm:prefix_cache_queries_total") == "200.0");
  CHECK(engine.sample("vllm:prefix_cache_hits_total") == "20.0");
  CHECK(engine.sample("vllm:mm_cache_queries_total") == "8.0");
  CHECK(engine.sample("vllm:mm_cache_hits_total") == "3.0");
  CHECK(engine.sample("vllm:estimated_flops_per_gpu_total") == "1.5e+12");
  CHECK(engine.sample("vllm:estimated_read_bytes_per_gpu_total") == "2.5");
}

TEST_CASE("page: max_tokens of 0 or none is not observed", "[loggers]") {
  Engine engine;
  engine.iteration.finished_requests.resize(3);
  engine.iteration.finished_requests[0].max_tokens_param = 0;
  engine.iteration.finished_requests[1].max_tokens_param = 7;
  engine.record();
  CHECK(engine.sample("vllm:request_params_max_tokens_count") == "1.0");
  CHECK(engine.sample("vllm:request_params_max_tokens_sum") == "7.0");
}

TEST_CASE("page: families follow the wire version and the switches",
          "[loggers]") {
  StatLoggerOptions given = options();
  SECTION("0.27 has no request_num_preemptions") {
    given.wire_version = {0, 27};
    CHECK(Engine(given).sample("vllm:request_num_preemptions_count") ==
          "absent");
    given.wire_version = {0, 29};
    given.registry = Registry::create();
    CHECK(Engine(given).sample("vllm:request_num_preemptions_count") ==
          "absent");
    CHECK(Engine().sample("vllm:request_num_preemptions_count") == "0.0");
  }
  SECTION("corrupted requests only with the NaN check") {
    CHECK(Engine().sample("vllm:corrupted_requests_total") == "absent");
    given.compute_nans_in_logits = true;
    Engine engine(given);
    engine.iteration.num_corrupted_reqs = 2;
    engine.record();
    CHECK(engine.sample("vllm:corrupted_requests_total") == "2.0");
  }
  SECTION("KV block residency only with kv_cache_metrics") {
    CHECK(Engine().sample("vllm:kv_block_lifetime_seconds_count") == "absent");
    given.kv_cache_metrics = true;
    Engine engine(given);
    engine.scheduler.kv_cache_eviction_events = {{2.0, 0.5, {0.25, 0.75}, 2}};
    engine.record();
    CHECK(engine.sample("vllm:kv_block_lifetime_seconds_sum") == "2.0");
    CHECK(engine.sample("vllm:kv_block_idle_before_evict_seconds_sum") ==
          "0.5");
    CHECK(engine.sample("vllm:kv_block_reuse_gap_seconds_count") == "2.0");
  }
  SECTION("self-metrics can be switched off") {
    given.self_metrics = false;
    Engine engine(given);
    engine.iteration.num_generation_tokens = -1;
    engine.record();
    CHECK(engine.page().find("vllm_metrics_") == std::string::npos);
  }
}

TEST_CASE("page: bounds can be replaced by family and for all latencies",
          "[loggers]") {
  StatLoggerOptions given = options();
  const std::string e2e = "vllm:e2e_request_latency_seconds";
  given.buckets = {{e2e, {0.01, 0.05, 0.1, 0.3, 1, kInf}}};
  given.latency_buckets = {0.5, 1};
  Engine engine(given);
  FinishedRequestStats finished;
  finished.e2e_latency = 0.04;
  engine.iteration.finished_requests = {finished};
  engine.record();
  const std::string page = engine.page();
  CHECK(bucket(page, e2e, "0.01") == "0.0");
  CHECK(bucket(page, e2e, "0.05") == "1.0");
  CHECK(bucket(page, e2e, "+Inf") == "1.0");
  CHECK(page.find("+Inf", page.find(e2e + "_bucket{engine=\"0\",le=\"+Inf\"") +
                              e2e.size() + 40) > page.find(e2e + "_count"));
  CHECK(bucket(page, "vllm:request_queue_time_seconds", "0.5") == "1.0");
  CHECK(bucket(page, "vllm:request_queue_time_seconds", "0.3") == "absent");
  CHECK(bucket(page, "vllm:request_prompt_tokens", "5000.0") == "1.0");
}

TEST_CASE("page: sleep states are one of three, or none", "[loggers]") {
  Engine engine;
  const auto states = [&] {
    std::string all;
    for (const std::string state :
         {"awake", "weights_offloaded", "discard_all"}) {
      all += value(engine.page(),
                   "vllm:engine_sleep_state{engine=\"0\",model_name=\"m\","
                   "sleep_state=\"" +
                       state + "\"}") +
             " ";
    }
    return all;
  };
  CHECK(states() == "1.0 0.0 0.0 ");
  const auto [sleep, level, expected] =
      GENERATE(table<int, int, std::string>({{1, 1, "0.0 1.0 0.0 "},
                                             {1, 2, "0.0 0.0 1.0 "},
                                             {1, 7, "0.0 0.0 0.0 "},
                                             {0, 2, "1.0 0.0 0.0 "}}));
  engine.manager->record_sleep_state({.sleep = sleep, .level = level});
  CHECK(states() == expected);
}

TEST_CASE("page: cache_config_info appears when the engines are initialised",
          "[loggers]") {
  StatLoggerOptions given = options();
  given.engine_indexes = {0, 1};
  given.cache_config = {{"block_size", "16"}, {"sliding_window", "None"}};
  Engine engine(given);
  CHECK(engine.page().find("cache_config_info") == std::string::npos);
  engine.manager->log_engine_initialized();
  engine.manager->log_engine_initialized();
  const std::string page = engine.page();
  for (const std::string index : {"0", "1"}) {
    CHECK(value(page, "vllm:cache_config_info{block_size=\"16\",engine=\"" +
                          index + "\",sliding_window=\"None\"}") == "1.0");
  }
  CHECK(page.find("# TYPE vllm:cache_config_info gauge") != std::string::npos);
}

TEST_CASE("page: step metrics of the engine's own agree with the step",
          "[loggers]") {
  StatLoggerOptions given = options();
  std::int64_t arrived = 0;
  given.step_metrics.metrics = {
      {.family = {.name = "sim_arrived",
                  .help = "Arrivals.",
                  .kind = MetricKind::kCounter}},
      {.family = {.name = "sim_load", .help = "Load."},
       .labels = {{"zone", "a"}}},
      {.family = {.name = "sim_delay_seconds",
                  .help = "Delay.",
                  .kind = MetricKind::kHistogram},
       .buckets = {1, 2}}};
  given.step_metrics.write = [&](const StepRecord&, StepWriter& writer) {
    writer.inc(0, arrived);
    writer.set(1, 0.25);
    writer.observe(2, 1.5);
    writer.set(0, 1.0);       // a counter cannot be set
    writer.inc(0, 0.5);       // nor take a fraction
    writer.observe(17, 1.0);  // there is no such metric
    writer.observe(2, kNan);
  };
  Engine engine(given);
  arrived = 3;
  engine.record();
  arrived = -1;
  engine.record();
  CHECK(engine.sample("sim_arrived_total") == "3.0");
  CHECK(value(engine.page(),
              "sim_load{engine=\"0\",model_name=\"m\",zone=\"a\"}") == "0.25");
  CHECK(engine.sample("sim_delay_seconds_sum") == "3.0");
  CHECK(engine.rejected("wrong_metric") == "6.0");
  CHECK(engine.rejected("negative_increment") == "1.0");
  CHECK(engine.rejected("not_finite") == "2.0");
}

TEST_CASE("page: a logger made without a registry is refused", "[loggers]") {
  StatLoggerOptions given = options();
  given.registry = nullptr;
  CHECK(PrometheusStatLogger::create(given).status().message() ==
        "registry is null; allowed: Registry::create()");
}

}  // namespace
}  // namespace vllm_metrics
