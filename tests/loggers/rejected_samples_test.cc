#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "tests/loggers/surroundings.h"
#include "vllm_metrics/loggers/nixl_connector_metrics.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"
#include "vllm_metrics/stats/kv_residency_sampler.h"
#include "vllm_metrics/stats/mooncake_store_stats.h"

// What the features of an engine could not tell, on the page.
namespace vllm_metrics {
namespace {

using namespace vllm_metrics::testing;

struct Engine : Surroundings {
  explicit Engine(StatLoggerOptions given) {
    given.registry = registry;
    manager = *StatLoggerManager::create(std::move(given));
  }
  std::string rejected(const std::string& reason) const {
    return value(page(),
                 "vllm_metrics_rejected_samples_total{engine=\"0\","
                 "model_name=\"m\",reason=\"" +
                     reason + "\"}");
  }
  void record() { manager->record(&scheduler, nullptr); }

  std::unique_ptr<StatLoggerManager> manager;
  SchedulerStats scheduler;
};

TEST_CASE("self-metrics: drafts whose counts cannot be", "[loggers]") {
  StatLoggerOptions options = Surroundings().options();
  options.num_speculative_tokens = 3;
  const bool is_diffusion = GENERATE(false, true);
  options.is_diffusion = is_diffusion;
  Engine engine(options);
  auto& drafts = engine.scheduler.spec_decoding_stats.emplace();
  drafts.num_spec_tokens = 3;
  drafts.observe_draft(3, 2);
  drafts.observe_draft(3, 4);
  drafts.observe_draft(-1, 0);
  engine.record();
  CHECK(engine.rejected("invalid_draft") == "2.0");
  drafts.reset();
  engine.record();
  CHECK(engine.rejected("invalid_draft") == "2.0");
}

TEST_CASE("self-metrics: evictions that the sampler could not keep",
          "[loggers]") {
  StatLoggerOptions options = Surroundings().options();
  options.kv_cache_metrics = true;
  Engine engine(options);
  auto sampler = *KvResidencySampler::create(
      {.num_blocks = 16, .sample_rate = 1.0, .max_pending_events = 4});
  for (int block = 0; block < 10; ++block) sampler.on_allocated(block, 0);
  for (int block = 0; block < 10; ++block)
    sampler.on_evicted(block, 1'000'000'000);
  sampler.drain(engine.scheduler);
  engine.record();
  CHECK(of_engine0(engine.page(), "vllm:kv_block_lifetime_seconds_count") ==
        "4.0");
  CHECK(engine.rejected("dropped_eviction") == "6.0");
  sampler.drain(engine.scheduler);  // nothing new
  engine.record();
  CHECK(of_engine0(engine.page(), "vllm:kv_block_lifetime_seconds_count") ==
        "4.0");
  CHECK(engine.rejected("dropped_eviction") == "6.0");
  CHECK(sampler.num_dropped_events() == 6);
}

TEST_CASE("self-metrics: a step of a connector that is not configured",
          "[loggers]") {
  StatLoggerOptions options = Surroundings().options();
  options.kv_connector = std::make_shared<NixlConnectorMetrics>();
  Engine engine(options);
  const MooncakeStoreStats other;
  engine.scheduler.kv_connector_stats = &other;
  engine.record();
  CHECK(engine.rejected("other_connector") == "1.0");
}

}  // namespace
}  // namespace vllm_metrics
