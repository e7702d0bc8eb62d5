#include "vllm_metrics/stats/nixl_stats.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

namespace vllm_metrics {
namespace {

TEST_CASE("NIXL stats: microseconds become seconds", "[stats]") {
  NixlStats stats;
  stats.record_transfer(1500, 80.5, 4096, 3);
  CHECK(stats.transfer_duration == std::vector<double>{0.0015});
  CHECK(stats.post_duration == std::vector<double>{0.0000805});
  CHECK(stats.bytes_transferred == std::vector<std::int64_t>{4096});
  CHECK(stats.num_descriptors == std::vector<std::int64_t>{3});
}

TEST_CASE("NIXL stats: empty without a success, a failure or an expiry",
          "[stats]") {
  NixlStats stats;
  CHECK(stats.empty());
  CHECK(stats.connector() == "nixl");
  SECTION("a transfer") { stats.record_transfer(0, 0, 0, 0); }
  SECTION("a failed transfer") { stats.record_failed_transfer(); }
  SECTION("a failed notification") { stats.record_failed_notification(); }
  SECTION("an expired request") { stats.record_kv_expired_req(); }
  CHECK_FALSE(stats.empty());
  stats.reset();
  CHECK(stats.empty());
}

TEST_CASE("NIXL stats: workers are put behind one another", "[stats]") {
  NixlStats first;
  first.record_transfer(1e6, 2e6, 10, 1);
  first.record_failed_transfer();
  NixlStats second;
  second.record_transfer(3e6, 4e6, 20, 2);
  second.record_failed_notification();
  second.record_kv_expired_req();
  first.aggregate(second);
  first.aggregate(NixlStats{});
  CHECK(first.transfer_duration == std::vector<double>{1, 3});
  CHECK(first.post_duration == std::vector<double>{2, 4});
  CHECK(first.bytes_transferred == std::vector<std::int64_t>{10, 20});
  CHECK(first.num_descriptors == std::vector<std::int64_t>{1, 2});
  CHECK(first.num_failed_transfers == std::vector<std::int64_t>{1});
  CHECK(first.num_failed_notifications == std::vector<std::int64_t>{1});
  CHECK(first.num_kv_expired_reqs == std::vector<std::int64_t>{1});
}

}  // namespace
}  // namespace vllm_metrics
