#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "tests/allocation_counter.h"
#include "tests/loggers/connector_page.h"
#include "vllm_metrics/loggers/mooncake_store_metrics.h"
#include "vllm_metrics/stats/mooncake_store_stats.h"

namespace vllm_metrics {
namespace {

using namespace vllm_metrics::testing;

constexpr std::size_t kMost = MooncakeStoreMetrics::kMaxExactCalls;

class StoringEngines : public ConnectedEngines {
 public:
  explicit StoringEngines(bool aggregated = false)
      : ConnectedEngines(std::make_shared<MooncakeStoreMetrics>(), aggregated) {
  }

  std::string sample(const std::string& name, const std::string& operation,
                     const std::string& status) const {
    return value(page(), "vllm:mooncake_store_operation" + name +
                             "{engine=\"0\",model_name=\"m\",operation=\"" +
                             operation + "\",status=\"" + status + "\"}");
  }
  std::string sampled() const {
    return value(page(),
                 "vllm_metrics_sampled_kv_transfers_total{model_name=\"m\"}");
  }
};

MooncakeStoreStats busy_step() {
  MooncakeStoreStats stats;
  stats.record({.operation = MooncakeOperation::kSavePut,
                .seconds = 0.01,
                .num_keys = 2,
                .num_bytes = 128});
  stats.record({.operation = MooncakeOperation::kSavePut,
                .status = MooncakeStatus::kError,
                .seconds = 0.03,
                .num_keys = 1,
                .num_bytes = 64,
                .num_failed_keys = 1});
  stats.record({.operation = MooncakeOperation::kLoadGet,
                .status = MooncakeStatus::kPartialFailure,
                .seconds = 2.5,
                .num_keys = 8,
                .num_bytes = 4096,
                .num_failed_keys = 3});
  stats.record({.operation = MooncakeOperation::kLookupExists,
                .seconds = 0.0005,
                .num_keys = 100});
  return stats;
}

const char* const kBusyStep =
    "load_get_count=1, load_get_avg_ms=2500.0, load_get_p90_ms=2500.0, "
    "load_get_total_keys=8, load_get_total_bytes=4096, load_get_failed_keys=3, "
    "load_get_error_count=0, lookup_exists_count=1, lookup_exists_avg_ms=0.5, "
    "lookup_exists_p90_ms=0.5, lookup_exists_total_keys=100, "
    "lookup_exists_total_bytes=0, lookup_exists_failed_keys=0, "
    "lookup_exists_error_count=0, save_put_count=2, save_put_avg_ms=20.0, "
    "save_put_p90_ms=30.0, save_put_total_keys=3, save_put_total_bytes=192, "
    "save_put_failed_keys=1, save_put_error_count=1";

TEST_CASE("Mooncake page: calls by operation and status", "[loggers]") {
  StoringEngines engines;
  CHECK(engines.sample("_total", "save_exists", "error") == "0.0");
  engines.record(busy_step());
  CHECK(engines.sample("_total", "save_put", "ok") == "1.0");
  CHECK(engines.sample("_total", "save_put", "error") == "1.0");
  CHECK(engines.sample("_total", "save_exists", "ok") == "0.0");
  CHECK(engines.sample("_keys_total", "lookup_exists", "ok") == "100.0");
  CHECK(engines.sample("_bytes_total", "load_get", "partial_failure") ==
        "4096.0");
  CHECK(engines.sample("_failed_keys_total", "load_get", "partial_failure") ==
        "3.0");
  CHECK(engines.sample("_time_seconds_count", "load_get", "partial_failure") ==
        "1.0");
  CHECK(engines.sample("_time_seconds_sum", "load_get", "partial_failure") ==
        "2.5");
  CHECK(value(engines.page(),
              "vllm:mooncake_store_operation_time_seconds_bucket{engine=\"0\","
              "le=\"0.01\",model_name=\"m\",operation=\"save_put\",status="
              "\"ok\"}") == "1.0");
}

TEST_CASE("Mooncake record: by operation, those that happened, by name",
          "[loggers]") {
  StoringEngines engines;
  engines.record(busy_step());
  CHECK(engines.logged() == one(kBusyStep));
  CHECK(engines.logged().empty());
}

TEST_CASE("Mooncake record: workers and engines are taken together",
          "[loggers]") {
  StoringEngines engines(/*aggregated=*/true);
  const MooncakeStoreStats all = busy_step();
  MooncakeStoreStats parts[2];
  for (std::size_t i = 0; i < all.calls.size(); ++i) {
    MooncakeStoreStats worker;
    worker.record(all.calls[i]);
    parts[i % 2].aggregate(worker);
  }
  engines.record(parts[0], 0);
  engines.record(parts[1], 1);
  CHECK(engines.logged() == one(kBusyStep));
}

// The nearest rank is int(0.9 n - 1e-12), counted from 0.
TEST_CASE("Mooncake record: P90 is a value that was seen", "[loggers]") {
  const auto [calls, p90] = GENERATE(table<int, std::string>(
      {{1, "1.0"}, {9, "9.0"}, {10, "9.0"}, {11, "10.0"}, {20, "18.0"}}));
  StoringEngines engines;
  MooncakeStoreStats stats;
  for (int i = calls; i > 0; --i) stats.record({.seconds = i * 1e-3});
  engines.record(stats);
  CHECK(engines.logged().at(0).find("lookup_exists_p90_ms=" + p90 + ",") !=
        std::string::npos);
}

TEST_CASE("Mooncake page: a call of no known operation or status is counted",
          "[loggers]") {
  StoringEngines engines;
  MooncakeStoreStats stats;
  stats.record({.operation = static_cast<MooncakeOperation>(9)});
  stats.record({.status = static_cast<MooncakeStatus>(9)});
  engines.record(stats);
  CHECK(value(engines.page(),
              "vllm_metrics_rejected_samples_total{engine=\"0\",model_name="
              "\"m\",reason=\"wrong_metric\"}") == "2.0");
}

TEST_CASE(
    "Mooncake record: beyond 16,384 calls P90 is of a sample, and the page "
    "says of how many; the memory stays",
    "[loggers]") {
  StoringEngines engines;
  MooncakeStoreStats step;
  for (int i = 1; i <= 1024; ++i) {
    step.record({.operation = MooncakeOperation::kLoadGet,
                 .seconds = i * 1e-3,
                 .num_keys = 1});
  }
  for (std::size_t i = 0; i < kMost / 1024; ++i) engines.record(step);
  CHECK(engines.sampled() == "0.0");
  CHECK(growth_of([&] {
          for (int i = 0; i < 84; ++i) engines.record(step);
        }) == 0);
  CHECK(engines.sampled() == "86016.0");
  const std::string text = engines.logged().at(0);
  CHECK(text.starts_with(
      "load_get_count=102400, load_get_avg_ms=512.5, load_get_p90_ms="));
  const std::string p90 = text.substr(text.find("p90_ms=") + 7);
  // Six times the deviation of a sample's quantile, 2.4 ms.
  CHECK(std::stod(p90) == Approx(922.0).margin(14.4));
  CHECK(
      text.ends_with("load_get_total_keys=102400, load_get_total_bytes=0, "
                     "load_get_failed_keys=0, load_get_error_count=0"));
}

}  // namespace
}  // namespace vllm_metrics
