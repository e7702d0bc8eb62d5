#include "vllm_metrics/stats/offloading_stats.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <vector>

namespace vllm_metrics {
namespace {

TEST_CASE("offloading stats: empty until something happened, and after reset",
          "[stats]") {
  OffloadingStats stats;
  CHECK(stats.empty());
  CHECK(stats.connector() == "offloading");
  SECTION("a load") { stats.record_load(1, 0.5); }
  SECTION("a store") { stats.record_store(1, 0.5); }
  SECTION("a lookup") { stats.record_lookup(0.001); }
  SECTION("a deferred lookup") { stats.record_deferred_lookup(0.001); }
  SECTION("no room") { stats.record_allocation_failure(); }
  CHECK_FALSE(stats.empty());
  stats.reset();
  CHECK(stats.empty());
}

TEST_CASE("offloading stats: workers add up", "[stats]") {
  OffloadingStats first;
  first.record_load(10, 0.5);
  first.record_lookup(0.25);
  OffloadingStats second;
  second.record_load(30, 1.5);
  second.record_store(7, 0.125);
  second.record_lookup(0.75);
  second.record_deferred_lookup(2);
  second.record_allocation_failure();
  first.aggregate(second);
  first.aggregate(OffloadingStats{});
  CHECK(first.load.bytes == 40);
  CHECK(first.load.time == 2.0);
  CHECK(first.load.sizes == std::vector<std::int64_t>{10, 30});
  CHECK(first.store.bytes == 7);
  CHECK(first.store.time == 0.125);
  CHECK(first.store.sizes == std::vector<std::int64_t>{7});
  CHECK(first.lookup_sync_delays == std::vector<double>{0.25, 0.75});
  CHECK(first.lookup_async_delays == std::vector<double>{2});
  CHECK(first.num_allocation_failures == 1);
}

TEST_CASE("offloading stats: bytes stay at the largest integer", "[stats]") {
  OffloadingStats stats;
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  stats.record_load(kMost, 1);
  stats.record_load(kMost, 1);
  CHECK(stats.load.bytes == kMost);
}

TEST_CASE("OffloadingStats: shares are states, the newest counts", "[stats]") {
  OffloadingStats stats;
  stats.cpu_cache_write_usage = 0.5;
  stats.num_stores_skipped = 2;
  OffloadingStats other;
  other.cpu_cache_write_usage = 0.25;
  other.num_stores_skipped = 3;
  CHECK_FALSE(other.empty());
  stats.aggregate(other);
  stats.aggregate(OffloadingStats());
  CHECK(stats.cpu_cache_write_usage == 0.25);
  CHECK_FALSE(stats.cpu_cache_read_usage.has_value());
  CHECK(stats.num_stores_skipped == 5);
  stats.reset();
  CHECK(stats.empty());
}

}  // namespace
}  // namespace vllm_metrics
