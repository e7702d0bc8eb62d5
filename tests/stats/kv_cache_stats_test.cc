#include "vllm_metrics/stats/kv_cache_stats.h"

#include <catch2/catch.hpp>

namespace vllm_metrics {
namespace {

TEST_CASE("KvCacheEvictionEvent: lists the gaps that are set", "[stats]") {
  KvCacheEvictionEvent event = {2.0, 0.5, {0.25, 0.75}, 2};
  REQUIRE(event.reuse_gaps_seconds().size() == 2);
  CHECK(event.reuse_gaps_seconds()[0] == 0.25);
  CHECK(event.reuse_gaps_seconds()[1] == 0.75);
  event.num_reuse_gaps = 1000;
  CHECK(event.reuse_gaps_seconds().size() == 3);
  CHECK(KvCacheEvictionEvent{}.reuse_gaps_seconds().empty());
}

}  // namespace
}  // namespace vllm_metrics
