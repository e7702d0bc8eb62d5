#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tests/allocation_counter.h"
#include "tests/loggers/connector_page.h"
#include "vllm_metrics/loggers/offloading_connector_metrics.h"
#include "vllm_metrics/stats/nixl_stats.h"
#include "vllm_metrics/stats/offloading_stats.h"

namespace vllm_metrics {
namespace {

using namespace vllm_metrics::testing;

class OffloadingEngines : public ConnectedEngines {
 public:
  explicit OffloadingEngines(bool aggregated = false)
      : ConnectedEngines(std::make_shared<OffloadingConnectorMetrics>(),
                         aggregated) {}

  std::string sample(const std::string& name) const {
    return of_engine0(page(), "vllm:kv_offload_" + name);
  }
  std::string sample(const std::string& name, const std::string& type) const {
    return value(page(), "vllm:kv_offload_" + name +
                             "{engine=\"0\",model_name=\"m\",transfer_type=\"" +
                             type + "\"}");
  }
};

OffloadingStats busy_step() {
  OffloadingStats stats;
  stats.record_load(4'000'000, 0.5);
  stats.record_load(150'000'000, 1.25);
  stats.record_store(1'000'000, 0.125);
  stats.record_lookup(0.000244140625);
  stats.record_lookup(0.25);
  stats.record_deferred_lookup(2.5);
  stats.record_allocation_failure();
  return stats;
}

const char* const kBusyStep =
    "vllm:kv_offload_load_bytes=154000000, vllm:kv_offload_load_time=1.75, "
    "vllm:kv_offload_load_size_count=2, "
    "vllm:kv_offload_load_size_sum=154000000, "
    "vllm:kv_offload_store_bytes=1000000, vllm:kv_offload_store_time=0.125, "
    "vllm:kv_offload_store_size_count=1, "
    "vllm:kv_offload_store_size_sum=1000000, "
    "vllm:kv_offload_lookup_sync_delay_seconds_count=2, "
    "vllm:kv_offload_lookup_sync_delay_seconds_sum=0.250244140625, "
    "vllm:kv_offload_lookup_async_delay_seconds_count=1, "
    "vllm:kv_offload_lookup_async_delay_seconds_sum=2.5, "
    "vllm:kv_offload_allocation_failure=1";

TEST_CASE("offloading page: each direction has bytes, time and sizes",
          "[loggers]") {
  OffloadingEngines engines;
  CHECK(engines.sample("load_bytes_total") == "0.0");
  engines.record(busy_step());
  CHECK(engines.sample("load_bytes_total") == "1.54e+08");
  CHECK(engines.sample("load_time_total") == "1.75");
  CHECK(engines.sample("load_size_count") == "2.0");
  CHECK(engines.sample("load_size_sum") == "1.54e+08");
  CHECK(engines.sample("store_bytes_total") == "1e+06");
  CHECK(engines.sample("store_time_total") == "0.125");
  CHECK(engines.sample("store_size_count") == "1.0");
  const std::string page = engines.page();
  CHECK(bucket(page, "vllm:kv_offload_load_size", "5e+06") == "1.0");
  CHECK(bucket(page, "vllm:kv_offload_load_size", "1.5e+08") == "2.0");
  CHECK(bucket(page, "vllm:kv_offload_store_size", "1e+06") == "1.0");
  CHECK(engines.sample("lookup_sync_delay_seconds_count") == "2.0");
  CHECK(bucket(page, "vllm:kv_offload_lookup_sync_delay_seconds", "0.0005") ==
        "1.0");
  CHECK(engines.sample("lookup_async_delay_seconds_sum") == "2.5");
  CHECK(engines.sample("allocation_failure_total") == "1.0");
}

TEST_CASE("offloading page: the deprecated families follow their successors",
          "[loggers]") {
  OffloadingEngines engines;
  CHECK(engines.sample("total_bytes_total", "GPU_to_CPU") == "0.0");
  engines.record(busy_step());
  CHECK(engines.sample("total_bytes_total", "CPU_to_GPU") == "1.54e+08");
  CHECK(engines.sample("total_bytes_total", "GPU_to_CPU") == "1e+06");
  CHECK(engines.sample("total_time_total", "CPU_to_GPU") == "1.75");
  CHECK(engines.sample("total_time_total", "GPU_to_CPU") == "0.125");
  CHECK(engines.sample("size_count", "CPU_to_GPU") == "2.0");
  CHECK(engines.sample("size_sum", "GPU_to_CPU") == "1e+06");
  const std::string page = engines.page();
  for (const std::string name :
       {"total_bytes_total", "total_time_total", "size"}) {
    const std::string help = "# HELP vllm:kv_offload_" + name + " ";
    const auto at = page.find(help);
    REQUIRE(at != page.npos);
    CHECK(page.find(help, at + 1) == page.npos);
    CHECK(page.substr(at + help.size(), 10) == "DEPRECATED");
  }
}

TEST_CASE("offloading record: what happened in the interval, and no more",
          "[loggers]") {
  OffloadingEngines engines;
  engines.record(busy_step());
  CHECK(engines.logged() == one(kBusyStep));
  CHECK(engines.logged().empty());
  OffloadingStats stats;
  stats.record_allocation_failure();
  stats.record_allocation_failure();
  engines.record(stats);
  CHECK(engines.logged() == one("vllm:kv_offload_allocation_failure=2"));
  engines.record(OffloadingStats{});  // nothing happened
  CHECK(engines.logged().empty());
}

TEST_CASE("offloading record: steps, workers and engines are taken together",
          "[loggers]") {
  OffloadingEngines engines(/*aggregated=*/true);
  OffloadingStats first;
  first.record_load(4'000'000, 0.5);
  OffloadingStats worker;
  worker.record_load(150'000'000, 1.25);
  worker.record_lookup(0.000244140625);
  first.aggregate(worker);
  OffloadingStats second;
  second.record_store(1'000'000, 0.125);
  second.record_lookup(0.25);
  second.record_deferred_lookup(2.5);
  second.record_allocation_failure();
  engines.record(first, 0);
  engines.record(second, 1);
  CHECK(engines.logged() == one(kBusyStep));
}

TEST_CASE("offloading: a value that cannot be is refused and counted",
          "[loggers]") {
  OffloadingEngines engines;
  OffloadingStats stats;
  stats.load.bytes = -1;
  stats.load.time = std::numeric_limits<double>::quiet_NaN();
  stats.record_lookup(std::numeric_limits<double>::infinity());
  engines.record(stats);
  CHECK(engines.sample("load_bytes_total") == "0.0");
  CHECK(engines.sample("load_time_total") == "0.0");
  CHECK(engines.sample("lookup_sync_delay_seconds_count") == "0.0");
  const auto rejected = [&](const std::string& reason) {
    return value(engines.page(),
                 "vllm_metrics_rejected_samples_total{engine=\"0\",model_name="
                 "\"m\",reason=\"" +
                     reason + "\"}");
  };
  // Once in the family and once in the deprecated one.
  CHECK(rejected("negative_increment") == "2.0");
  CHECK(rejected("not_finite") == "3.0");
}

TEST_CASE("offloading: its memory does not grow with the steps", "[loggers]") {
  OffloadingEngines engines;
  const OffloadingStats step = busy_step();
  engines.record(step);
  CHECK(allocations_of([&] {
          for (int i = 0; i < 10'000; ++i) engines.record(step);
        }) == 0);
}

TEST_CASE("offloading page: what transfers hold of the CPU's blocks",
          "[loggers]") {
  OffloadingEngines engines;
  OffloadingStats stats;
  stats.cpu_cache_write_usage = 0.25;
  engines.record(stats);
  CHECK(engines.sample("cpu_cache_usage_perc") == "0.25");
  CHECK(engines.sample("cpu_cache_write_usage_perc") == "0.25");
  stats.cpu_cache_write_usage = 0.125;
  stats.cpu_cache_read_usage = 0.5;
  engines.record(stats);
  CHECK(engines.sample("cpu_cache_usage_perc") == "0.625");
  CHECK(engines.sample("cpu_cache_write_usage_perc") == "0.125");
  CHECK(engines.sample("cpu_cache_read_usage_perc") == "0.5");
  engines.record(OffloadingStats());  // says nothing of them
  CHECK(engines.sample("cpu_cache_usage_perc") == "0.625");
  CHECK(engines.logged() ==
        one("vllm:kv_offload_cpu_cache_usage_perc=0.625, "
            "vllm:kv_offload_cpu_cache_write_usage_perc=0.125, "
            "vllm:kv_offload_cpu_cache_read_usage_perc=0.5"));
}

TEST_CASE("offloading page: skipped stores, where there is a threshold",
          "[loggers]") {
  const std::int64_t threshold = GENERATE(0, 1, 2);
  CAPTURE(threshold);
  ConnectedEngines engines(std::make_shared<OffloadingConnectorMetrics>(
      OffloadingSetup{.store_threshold = threshold}));
  OffloadingStats stats;
  stats.num_stores_skipped = 5;
  engines.record(stats);
  const std::string page = engines.page();
  CHECK(of_engine0(page, "vllm:kv_offload_stores_skipped_total") ==
        (threshold == 2 ? "5.0" : "absent"));
  // Without one there is nowhere to count them, which is told.
  CHECK(value(page,
              "vllm_metrics_rejected_samples_total{engine=\"0\",model_name="
              "\"m\",reason=\"wrong_metric\"}") ==
        (threshold == 2 ? "0.0" : "1.0"));
  CHECK(engines.logged() == one("vllm:kv_offload_stores_skipped=5"));
}

}  // namespace
}  // namespace vllm_metrics
