#include "vllm_metrics/stats/cache_stats.h"

#include <catch2/catch.hpp>

namespace vllm_metrics {
namespace {

TEST_CASE(
    "PrefixCacheStats: a lookup counts a request, its tokens and its "
    "hits",
    "[stats]") {
  PrefixCacheStats stats;
  stats.record(512, 480, false);
  stats.record(100, 0, false);
  CHECK(stats.requests == 2);
  CHECK(stats.queries == 612);
  CHECK(stats.hits == 480);
  CHECK(stats.preempted_requests == 0);
  CHECK_FALSE(stats.reset);
}

TEST_CASE("PrefixCacheStats: lookups of preempted requests stand apart",
          "[stats]") {
  PrefixCacheStats stats;
  stats.record(512, 480, true);
  stats.record(8, 4, false);
  stats.record(100, 60, true);
  CHECK(stats.requests == 1);
  CHECK(stats.queries == 8);
  CHECK(stats.hits == 4);
  CHECK(stats.preempted_requests == 2);
  CHECK(stats.preempted_queries == 612);
  CHECK(stats.preempted_hits == 540);
}

}  // namespace
}  // namespace vllm_metrics
