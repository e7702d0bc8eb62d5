#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "tests/allocation_counter.h"
#include "tests/loggers/connector_page.h"
#include "vllm_metrics/loggers/simple_offload_connector_metrics.h"
#include "vllm_metrics/stats/simple_offload_stats.h"

namespace vllm_metrics {
namespace {

using namespace vllm_metrics::testing;

std::shared_ptr<SimpleOffloadConnectorMetrics> on_disk() {
  return std::make_shared<SimpleOffloadConnectorMetrics>(
      SimpleOffloadSetup{.backend = "disk",
                         .page_cache = true,
                         .lazy_offload = false,
                         .capacity_blocks = 4096});
}

class SimplyOffloadingEngines : public ConnectedEngines {
 public:
  SimplyOffloadingEngines() : ConnectedEngines(on_disk()) {}

  std::string labelled(const std::string& name,
                       const std::string& label) const {
    return value(page(), "vllm:simple_kv_offload_" + name +
                             "{engine=\"0\",model_name=\"m\"," + label + "}");
  }
  std::string sample(const std::string& name) const {
    return of_engine0(page(), "vllm:simple_kv_offload_" + name);
  }
};

SimpleOffloadStats busy_step() {
  SimpleOffloadStats stats;
  stats.record_save(SaveOutcome::kStored, 5);
  stats.record_save(SaveOutcome::kDroppedCpuFull);
  stats.num_load_blocks_issued = 3;
  stats.num_load_blocks_completed = 2;
  stats.used_blocks = 17;
  stats.pending_store_blocks = 4;
  return stats;
}

TEST_CASE("simple offload page: outcomes, phases and the two gauges",
          "[loggers]") {
  SimplyOffloadingEngines engines;
  engines.record(busy_step());
  engines.record(busy_step());
  CHECK(engines.labelled("save_outcomes_total", "outcome=\"stored\"") ==
        "10.0");
  CHECK(engines.labelled("save_outcomes_total",
                         "outcome=\"dropped_cpu_full\"") == "2.0");
  CHECK(engines.labelled("save_outcomes_total",
                         "outcome=\"skipped_in_flight\"") == "0.0");
  CHECK(engines.labelled("load_blocks_total", "phase=\"issued\"") == "6.0");
  CHECK(engines.labelled("load_blocks_total", "phase=\"completed\"") == "4.0");
  CHECK(engines.sample("used_blocks") == "17.0");
  CHECK(engines.sample("pending_store_blocks") == "4.0");
  SimpleOffloadStats silent;  // a gauge that is not told stays
  silent.num_load_blocks_issued = 1;
  engines.record(silent);
  CHECK(engines.sample("used_blocks") == "17.0");
}

TEST_CASE("simple offload page: the setup is 1 before the first step",
          "[loggers]") {
  const SimplyOffloadingEngines engines;
  for (const std::string engine : {"0", "1"}) {
    CHECK(value(engines.page(),
                "vllm:simple_kv_offload_info{backend=\"disk\",capacity_blocks="
                "\"4096\",engine=\"" +
                    engine +
                    "\",lazy_offload=\"false\",model_name=\"m\",page_cache="
                    "\"true\"}") == "1.0");
  }
}

TEST_CASE(
    "simple offload page: a release of 0.27 has none of it, and steps do "
    "no harm",
    "[loggers]") {
  Surroundings around;
  StatLoggerOptions options = around.options();
  options.wire_version = {0, 27};
  options.kv_connector = on_disk();
  const auto manager = *StatLoggerManager::create(options);
  const SimpleOffloadStats step = busy_step();
  SchedulerStats scheduler;
  scheduler.kv_connector_stats = &step;
  manager->record(&scheduler, nullptr);
  CHECK(around.page().find("simple_kv_offload") == std::string::npos);
  CHECK(of_engine0(around.page(), "vllm:num_requests_running") == "0.0");
}

TEST_CASE("simple offload record: as Python shows its labels", "[loggers]") {
  SimplyOffloadingEngines engines;
  engines.record(busy_step());
  CHECK(engines.logged() ==
        one("vllm:simple_kv_offload_save_outcomes_total:('stored',)=5, "
            "vllm:simple_kv_offload_save_outcomes_total:('dropped_cpu_full',)="
            "1, vllm:simple_kv_offload_load_blocks_total:('issued',)=3, "
            "vllm:simple_kv_offload_load_blocks_total:('completed',)=2, "
            "vllm:simple_kv_offload_used_blocks=17, "
            "vllm:simple_kv_offload_pending_store_blocks=4"));
  CHECK(engines.logged().empty());
  SimpleOffloadStats idle;
  idle.used_blocks = 0;
  engines.record(idle);
  CHECK(engines.logged() == one("vllm:simple_kv_offload_used_blocks=0"));
}

TEST_CASE("simple offload: a step allocates nothing", "[loggers]") {
  SimplyOffloadingEngines engines;
  const SimpleOffloadStats step = busy_step();
  engines.record(step);
  CHECK(allocations_of([&] {
          for (int i = 0; i < 1000; ++i) engines.record(step);
        }) == 0);
}

}  // namespace
}  // namespace vllm_metrics
