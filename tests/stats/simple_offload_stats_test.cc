#include "vllm_metrics/stats/simple_offload_stats.h"

#include <catch2/catch.hpp>

namespace vllm_metrics {
namespace {

TEST_CASE("simple offload stats: empty until something is told", "[stats]") {
  SimpleOffloadStats stats;
  CHECK(stats.empty());
  CHECK(stats.connector() == "simple_offload");
  SECTION("a save") { stats.record_save(SaveOutcome::kStored); }
  SECTION("an issued load") { stats.num_load_blocks_issued = 1; }
  SECTION("a completed load") { stats.num_load_blocks_completed = 1; }
  SECTION("used blocks, though 0") { stats.used_blocks = 0; }
  SECTION("pending blocks, though 0") { stats.pending_store_blocks = 0; }
  CHECK_FALSE(stats.empty());
  stats.reset();
  CHECK(stats.empty());
}

TEST_CASE("simple offload stats: counts add up, a gauge is the newest",
          "[stats]") {
  SimpleOffloadStats first;
  first.record_save(SaveOutcome::kStored, 4);
  first.used_blocks = 10;
  first.pending_store_blocks = 3;
  SimpleOffloadStats second;
  second.record_save(SaveOutcome::kStored);
  second.record_save(SaveOutcome::kSkippedInFlight, 2);
  second.num_load_blocks_issued = 5;
  second.num_load_blocks_completed = 6;
  second.used_blocks = 0;
  first.aggregate(second);
  CHECK(first.save_outcomes[0] == 5);
  CHECK(first.save_outcomes[6] == 2);
  CHECK(first.num_load_blocks_issued == 5);
  CHECK(first.num_load_blocks_completed == 6);
  CHECK(first.used_blocks == 0);
  CHECK(first.pending_store_blocks == 3);
}

TEST_CASE("simple offload stats: an outcome that is none changes nothing",
          "[stats]") {
  SimpleOffloadStats stats;
  stats.record_save(static_cast<SaveOutcome>(200), 4);
  CHECK(stats.empty());
}

}  // namespace
}  // namespace vllm_metrics
