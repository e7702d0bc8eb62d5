#include "vllm_metrics/stats/spec_decoding_stats.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <vector>

namespace vllm_metrics {
namespace {

using Counts = std::vector<std::int64_t>;

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

TEST_CASE("SpecDecodingStats: counts drafts, tokens and positions", "[stats]") {
  SpecDecodingStats stats = {.num_spec_tokens = 3};
  stats.observe_draft(3, 2);
  stats.observe_draft(3, 0);
  stats.observe_draft(1, 1);
  stats.observe_draft(3, 3);
  stats.observe_draft(0, 0);
  CHECK(stats.num_drafts == 5);
  CHECK(stats.num_draft_tokens == 10);
  CHECK(stats.num_accepted_tokens == 6);
  CHECK(stats.num_accepted_tokens_per_pos == Counts{3, 2, 1});
  CHECK(stats.num_invalid_drafts == 0);
}

TEST_CASE("SpecDecodingStats: counts that cannot be are clamped and counted",
          "[stats]") {
  SpecDecodingStats stats = {.num_spec_tokens = 2};
  stats.observe_draft(2, 5);
  CHECK(stats.num_accepted_tokens == 2);
  stats.observe_draft(-4, 0);
  CHECK(stats.num_draft_tokens == 2);
  stats.observe_draft(2, -1);
  CHECK(stats.num_accepted_tokens == 2);
  stats.observe_draft(kMax, kMax);
  stats.observe_draft(-kMax - 1, -kMax - 1);
  CHECK(stats.num_drafts == 5);
  CHECK(stats.num_draft_tokens == 4 + 2147483647LL);
  CHECK(stats.num_accepted_tokens == 4);
  CHECK(stats.num_accepted_tokens_per_pos == Counts{2, 2});
  CHECK(stats.num_invalid_drafts == 5);
}

TEST_CASE(
    "SpecDecodingStats: a draft length out of range counts as the nearest",
    "[stats]") {
  SpecDecodingStats stats;
  stats.observe_draft(4, 1);
  CHECK(stats.num_accepted_tokens == 0);
  CHECK(stats.num_invalid_drafts == 1);
  stats.num_spec_tokens = -3;
  stats.observe_draft(4, 0);
  CHECK(stats.num_accepted_tokens_per_pos.empty());
  stats.num_spec_tokens = kMax;
  stats.observe_draft(4, 1);
  CHECK(stats.num_accepted_tokens_per_pos.size() == 4096);
  CHECK(stats.num_accepted_tokens_per_pos[0] == 1);
}

TEST_CASE("SpecDecodingStats: reset keeps the draft length and the storage",
          "[stats]") {
  SpecDecodingStats stats = {.num_spec_tokens = 2};
  stats.observe_draft(2, 2);
  stats.observe_draft(2, 3);
  stats.reset();
  CHECK(stats.num_spec_tokens == 2);
  CHECK(stats.num_drafts == 0);
  CHECK(stats.num_draft_tokens == 0);
  CHECK(stats.num_accepted_tokens == 0);
  CHECK(stats.num_accepted_tokens_per_pos == Counts{0, 0});
  CHECK(stats.num_invalid_drafts == 0);
}

}  // namespace
}  // namespace vllm_metrics
