#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/allocation_counter.h"
#include "tests/loggers/connector_page.h"
#include "vllm_metrics/loggers/multi_connector_metrics.h"
#include "vllm_metrics/loggers/nixl_connector_metrics.h"
#include "vllm_metrics/loggers/offloading_connector_metrics.h"
#include "vllm_metrics/loggers/simple_offload_connector_metrics.h"
#include "vllm_metrics/stats/mooncake_store_stats.h"
#include "vllm_metrics/stats/multi_connector_stats.h"
#include "vllm_metrics/stats/nixl_stats.h"
#include "vllm_metrics/stats/offloading_stats.h"
#include "vllm_metrics/stats/simple_offload_stats.h"

namespace vllm_metrics {
namespace {

using namespace vllm_metrics::testing;

std::shared_ptr<const MultiConnectorMetrics> three() {
  return std::make_shared<MultiConnectorMetrics>(
      MultiConnectorMetrics::Connectors{
          std::make_shared<NixlConnectorMetrics>(),
          nullptr,
          std::make_shared<OffloadingConnectorMetrics>(),
          std::make_shared<SimpleOffloadConnectorMetrics>(
              SimpleOffloadSetup{.capacity_blocks = 512}),
      });
}

// A step in which each of them did something.
struct BusyStep {
  BusyStep() {
    nixl.record_transfer(1000, 10, 1 << 20, 4);
    offloading.record_store(1'000'000, 0.125);
    offloading.cpu_cache_write_usage = 0.25;
    simple.record_save(SaveOutcome::kStored, 3);
    all.parts = {&simple, nullptr, &nixl, &offloading};
  }
  NixlStats nixl;
  OffloadingStats offloading;
  SimpleOffloadStats simple;
  MultiConnectorStats all;
};

std::string rejected(const std::string& page) {
  return value(page,
               "vllm_metrics_rejected_samples_total{engine=\"0\",model_name="
               "\"m\",reason=\"other_connector\"}");
}

TEST_CASE("several connectors: each writes its own families, in any order",
          "[loggers]") {
  ConnectedEngines engines(three());
  CHECK(value(engines.page(),
              "vllm:simple_kv_offload_info{backend=\"cpu\",capacity_blocks="
              "\"512\",engine=\"0\",lazy_offload=\"false\",model_name=\"m\","
              "page_cache=\"false\"}") == "1.0");
  const BusyStep step;
  engines.record(step.all);
  engines.record(step.all);
  const std::string page = engines.page();
  CHECK(of_engine0(page, "vllm:nixl_xfer_time_seconds_count") == "2.0");
  CHECK(of_engine0(page, "vllm:kv_offload_store_bytes_total") == "2e+06");
  CHECK(of_engine0(page, "vllm:kv_offload_cpu_cache_usage_perc") == "0.25");
  CHECK(value(page,
              "vllm:simple_kv_offload_save_outcomes_total{engine=\"0\","
              "model_name=\"m\",outcome=\"stored\"}") == "6.0");
  CHECK(rejected(page) == "0.0");
}

TEST_CASE("several connectors: the record has what each of them did",
          "[loggers]") {
  ConnectedEngines engines(three());
  const BusyStep step;
  engines.record(step.all);
  CHECK(engines.logged() ==
        one("nixl={Num successful transfers=1, Avg xfer time (ms)=1.0, P90 "
            "xfer time (ms)=1.0, Avg post time (ms)=0.01, P90 post time "
            "(ms)=0.01, Avg MB per transfer=1.0, Throughput (MB/s)=1000.0, Avg "
            "number of descriptors=4.0}, "
            "offloading={vllm:kv_offload_store_bytes=1000000, "
            "vllm:kv_offload_store_time=0.125, "
            "vllm:kv_offload_store_size_count=1, "
            "vllm:kv_offload_store_size_sum=1000000, "
            "vllm:kv_offload_cpu_cache_usage_perc=0.25, "
            "vllm:kv_offload_cpu_cache_write_usage_perc=0.25, "
            "vllm:kv_offload_cpu_cache_read_usage_perc=0.0}, "
            "simple_offload={vllm:simple_kv_offload_save_outcomes_total:("
            "'stored',)=3}"));
  CHECK(engines.logged().empty());
  MultiConnectorStats one_of_them;
  one_of_them.parts = {&step.simple};
  engines.record(one_of_them);
  CHECK(engines.logged() ==
        one("simple_offload={vllm:simple_kv_offload_save_outcomes_total:("
            "'stored',)=3}"));
}

TEST_CASE("several connectors: a part of none of them is counted, not lost",
          "[loggers]") {
  ConnectedEngines engines(three());
  const MooncakeStoreStats stranger;
  BusyStep step;
  step.all.parts = {&stranger, &step.nixl};
  engines.record(step.all);
  CHECK(rejected(engines.page()) == "1.0");
  CHECK(of_engine0(engines.page(), "vllm:nixl_xfer_time_seconds_count") ==
        "1.0");
  // Nor are statistics of one of them alone those of several.
  engines.record(step.nixl);
  CHECK(rejected(engines.page()) == "2.0");
}

TEST_CASE("several connectors: one of a kind", "[loggers]") {
  const Surroundings around;
  StatLoggerOptions options = around.options();
  const auto nixl = std::make_shared<NixlConnectorMetrics>();
  options.kv_connector = std::make_shared<MultiConnectorMetrics>(
      MultiConnectorMetrics::Connectors{nixl, nixl});
  const auto manager = StatLoggerManager::create(options);
  REQUIRE_FALSE(manager.ok());
  CHECK(std::string(manager.status().message())
            .find("vllm:nixl_xfer_time_seconds") != std::string::npos);
}

TEST_CASE("several connectors: what they sampled adds up", "[loggers]") {
  const auto nixl = std::make_shared<NixlConnectorMetrics>();
  const MultiConnectorMetrics multi({nixl});
  const auto log = multi.make_log();
  NixlStats many;
  for (std::size_t i = 0; i < NixlConnectorMetrics::kMaxExactTransfers + 7; ++i)
    many.record_transfer(1000, 10, 1, 1);
  MultiConnectorStats step;
  step.parts = {&many};
  log->observe(step);
  CHECK(multi.sampled() == 7);
}

TEST_CASE("several connectors: a step allocates nothing", "[loggers]") {
  ConnectedEngines engines(three());
  const BusyStep step;
  engines.record(step.all);
  CHECK(allocations_of([&] { engines.record(step.all); }) == 0);
}

TEST_CASE("MultiConnectorStats: empty when every part is", "[loggers]") {
  MultiConnectorStats stats;
  CHECK(stats.empty());
  NixlStats nixl;
  stats.parts = {nullptr, &nixl};
  CHECK(stats.empty());
  nixl.record_notification_after_expiry();
  CHECK_FALSE(stats.empty());
}

}  // namespace
}  // namespace vllm_metrics
