#include "vllm_metrics/stats/prompt_token_stats.h"

#include <catch2/catch.hpp>

namespace vllm_metrics {
namespace {

PrefillStats prefill(std::int64_t prompt, std::int64_t local,
                     std::int64_t external) {
  return {.num_prompt_tokens = prompt,
          .num_local_cached_tokens = local,
          .num_external_cached_tokens = external};
}

TEST_CASE("PrefillStats: what is not cached is computed", "[stats]") {
  CHECK(prefill(312, 240, 56).num_cached_tokens() == 296);
  CHECK(prefill(312, 240, 56).num_computed_tokens() == 16);
  CHECK(prefill(312, 0, 0).num_computed_tokens() == 312);
  CHECK(prefill(312, 312, 0).num_computed_tokens() == 0);
}

// Do prompt tokens include the cached ones? Yes, and the sources add up.
TEST_CASE("PromptTokenStats: one prefill of 312 tokens by its sources",
          "[stats]") {
  PromptTokenStats stats;
  stats.update(prefill(312, 240, 56));
  CHECK(stats.computed == 16);
  CHECK(stats.local_cache_hit == 240);
  CHECK(stats.external_kv_transfer == 56);
  CHECK(stats.cached_tokens == 296);
  CHECK(stats.total == 312);
}

TEST_CASE("PromptTokenStats: prefills add up, and so do the sources",
          "[stats]") {
  PromptTokenStats stats;
  stats.update(prefill(100, 0, 0));
  stats.update(prefill(50, 48, 0));
  stats.update(prefill(7, 2, 4));
  CHECK(stats.computed == 103);
  CHECK(stats.local_cache_hit == 50);
  CHECK(stats.external_kv_transfer == 4);
  CHECK(stats.cached_tokens == 54);
  CHECK(stats.total == 157);
  CHECK(stats.computed + stats.local_cache_hit + stats.external_kv_transfer ==
        stats.total);
}

// After a preemption with an external cache, engines have computed negative
// local hits; whoever records them drops that part and no other.
TEST_CASE("PromptTokenStats: a negative part stays negative", "[stats]") {
  PromptTokenStats stats;
  stats.update(prefill(81, -16, 80));
  CHECK(stats.computed == 17);
  CHECK(stats.local_cache_hit == -16);
  CHECK(stats.external_kv_transfer == 80);
  CHECK(stats.cached_tokens == 64);
  CHECK(stats.total == 81);
}

TEST_CASE("PromptTokenStats: what came from outside, by where it was",
          "[stats]") {
  PromptTokenStats stats;
  PrefillStats fetched = prefill(100, 16, 80);
  fetched.num_host_cached_tokens = 32;
  fetched.num_p2p_cached_tokens = 24;
  fetched.num_disk_cached_tokens = 8;
  stats.update(fetched);
  stats.update(prefill(50, 0, 10));
  CHECK(stats.host_cached == 32);
  CHECK(stats.p2p_cached == 24);
  CHECK(stats.disk_cached == 8);
  CHECK(stats.external_unspecified() == 26);
  CHECK(stats.local_cache_hit + stats.host_cached + stats.p2p_cached +
            stats.disk_cached + stats.external_unspecified() ==
        stats.cached_tokens);
}

}  // namespace
}  // namespace vllm_metrics
