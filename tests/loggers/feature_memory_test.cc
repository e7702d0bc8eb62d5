#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/allocation_counter.h"
#include "tests/loggers/surroundings.h"
#include "vllm_metrics/loggers/nixl_connector_metrics.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"
#include "vllm_metrics/stats/kv_residency_sampler.h"
#include "vllm_metrics/stats/nixl_stats.h"
#include "vllm_metrics/stats/perf_breakdown.h"
#include "vllm_metrics/stats/perf_model.h"

namespace vllm_metrics {
namespace {

using namespace vllm_metrics::testing;

constexpr std::int64_t kSpecTokens = 4;

StatLoggerOptions with_every_feature(StatLoggerOptions options) {
  options.compute_nans_in_logits = true;
  options.kv_cache_metrics = true;
  options.num_speculative_tokens = kSpecTokens;
  options.max_loras = 4;
  options.lora_label_sets = 3;
  options.kv_connector = std::make_shared<NixlConnectorMetrics>();
  options.enable_mfu_metrics = true;
  options.debug_mfu_metrics = true;
  options.cudagraph = {.mode = "FULL", .capture_sizes = {1, 2, 4, 8}};
  return options;
}

ModelShape small_model() {
  ModelShape shape;
  shape.num_hidden_layers = 2;
  shape.hidden_size = 64;
  shape.num_attention_heads = 4;
  shape.num_kv_heads = 2;
  shape.head_dim = 16;
  shape.vocab_size = 1000;
  shape.intermediate_size = 256;
  return shape;
}

// An engine that fills everything a step can have: requests of three adapters
// that come, wait, run and end, with drafts, transfers, evictions, estimates.
class BusyEngine {
 public:
  BusyEngine(StatLoggerManager& manager, int index)
      : manager_(manager),
        index_(index),
        model_(*PerfModel::create(small_model())),
        sampler_(*KvResidencySampler::create(
            {.num_blocks = 256, .sample_rate = 1.0})) {
    for (std::size_t i = 0; i < requests_.size(); ++i) begin(i);
  }

  void step() {
    now_ += 0.01;
    step_requests();
    adapters_.update(scheduler_);
    step_drafts();
    step_transfers();
    step_blocks();
    estimate();
    scheduler_.cudagraph_stats = CudaGraphStat{
        steps_ % 8, 8, 8 - steps_ % 8, steps_ % 3 == 0 ? "FULL" : "PIECEWISE"};
    manager_.record(&scheduler_, &iteration_, &mm_cache_, index_);
    ++steps_;
  }

 private:
  static constexpr std::array<const char*, 3> kAdapters = {
      "sql", "an adapter with a name of some length", "c"};

  void begin(std::size_t i) {
    RequestStateStats& request = requests_[i];
    std::string name = std::move(request.lora_name);
    name = kAdapters[i % kAdapters.size()];
    request = RequestStateStats{.arrival_time = now_};
    request.lora_name = std::move(name);
    request.lora = &adapters_;
  }

  void step_requests() {
    iteration_.reset(now_);
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      const EngineCoreEvent events[] = {
          {EngineCoreEvent::Type::kQueued, now_ - 0.005},
          {EngineCoreEvent::Type::kScheduled, now_ - 0.004}};
      EngineCoreOutput output{.num_new_tokens = 1};
      if (requests_[i].is_prefilling) {
        output.events = events;
        output.prefill_stats = PrefillStats{.num_prompt_tokens = 100};
      }
      iteration_.update_from_output(output, now_, requests_[i]);
      if ((static_cast<std::size_t>(steps_) + i) % 5 == 0) {
        iteration_.update_from_finished_request(FinishReason::kStop,
                                                requests_[i]);
        begin(i);
      }
    }
  }

  void step_drafts() {
    auto& drafts = scheduler_.spec_decoding_stats;
    if (!drafts.has_value()) drafts.emplace().num_spec_tokens = kSpecTokens;
    drafts->reset();
    for (std::int64_t i = 0; i < 8; ++i)
      drafts->observe_draft(kSpecTokens, i % (kSpecTokens + 1));
  }

  void step_transfers() {
    transfers_.reset();
    transfers_.record_transfer(1000.0 + static_cast<double>(steps_ % 100), 50,
                               1 << 20, 4);
    transfers_.record_failed_notification();
    scheduler_.kv_connector_stats = &transfers_;
  }

  void step_blocks() {
    scheduler_.kv_cache_eviction_events.clear();
    const std::int64_t block = steps_ % 256;
    const std::int64_t now_ns = steps_ * 1'000'000;
    sampler_.on_evicted(block, now_ns);
    sampler_.on_allocated(block, now_ns);
    sampler_.on_accessed(block, now_ns + 1000);
    sampler_.drain(scheduler_.kv_cache_eviction_events);
  }

  void estimate() {
    PerfContext context;
    for (std::size_t i = 0; i < requests_.size(); ++i)
      context.add({.num_scheduled_tokens = 1, .num_computed_tokens = 100});
    scheduler_.perf_stats = model_.estimate(context, breakdown_);
  }

  StatLoggerManager& manager_;
  const int index_;
  double now_ = 1000.0;
  std::int64_t steps_ = 0;
  std::array<RequestStateStats, 16> requests_;
  LoraRequestStates adapters_;
  NixlStats transfers_;
  const PerfModel model_;
  PerfBreakdown breakdown_;
  KvResidencySampler sampler_;
  SchedulerStats scheduler_;
  IterationStats iteration_;
  MultiModalCacheStats mm_cache_{.requests = 1, .queries = 2, .hits = 1};
};

TEST_CASE(
    "memory: with every feature on and 8 engines, a steady step allocates "
    "nothing",
    "[loggers]") {
  const Surroundings around;
  StatLoggerOptions options = with_every_feature(around.options());
  options.engine_indexes = {0, 1, 2, 3, 4, 5, 6, 7};
  options.aggregate_engine_logging = GENERATE(false, true);
  const auto manager = *StatLoggerManager::create(options);
  std::vector<std::unique_ptr<BusyEngine>> engines;
  for (const int index : options.engine_indexes) {
    engines.push_back(std::make_unique<BusyEngine>(*manager, index));
  }
  const auto run = [&engines](int steps) {
    for (int i = 0; i < steps; ++i) {
      for (const auto& engine : engines) engine->step();
    }
  };
  // Each of the two intervals of a text record sees every kind of step once.
  for (int i = 0; i < 2; ++i) {
    run(600);
    around.clock->advance(10);
    manager->log();
  }
  CHECK(allocations_of([&] { run(500); }) == 0);
}

TEST_CASE(
    "memory: 10^6 steps with drafts and transfers and no log() take less than "
    "1 MiB",
    "[loggers]") {
  const Surroundings around;
  const auto manager =
      *StatLoggerManager::create(with_every_feature(around.options()));
  SchedulerStats scheduler;
  NixlStats transfers;
  scheduler.spec_decoding_stats.emplace().num_spec_tokens = kSpecTokens;
  scheduler.kv_connector_stats = &transfers;
  const auto record = [&](int steps) {
    for (int i = 0; i < steps; ++i) {
      scheduler.spec_decoding_stats->reset();
      scheduler.spec_decoding_stats->observe_draft(kSpecTokens, i % 5);
      transfers.reset();
      transfers.record_transfer(1000.0 + i % 1000, 50, 1 << 20, 4);
      transfers.record_kv_expired_req();
      scheduler.cudagraph_stats = CudaGraphStat{i % 512, 512, 0, "FULL"};
      manager->record(&scheduler, nullptr);
    }
  };
  const std::ptrdiff_t growth = growth_of([&] { record(1'000'000); });
  CHECK(growth < 1 << 20);
  CHECK(growth_of([&] { record(100'000); }) == 0);
  CHECK(of_engine0(around.page(), "vllm:nixl_xfer_time_seconds_count") ==
        "1.1e+06");
  CHECK(value(around.page(),
              "vllm_metrics_sampled_kv_transfers_total{model_name=\"m\"}") ==
        "1.083616e+06");
}

}  // namespace
}  // namespace vllm_metrics
