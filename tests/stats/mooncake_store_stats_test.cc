#include "vllm_metrics/stats/mooncake_store_stats.h"

#include <catch2/catch.hpp>

namespace vllm_metrics {
namespace {

TEST_CASE("Mooncake stats: workers are put behind one another", "[stats]") {
  MooncakeStoreStats first;
  CHECK(first.empty());
  CHECK(first.connector() == "mooncake_store");
  first.record({.operation = MooncakeOperation::kSavePut, .seconds = 0.5});
  MooncakeStoreStats second;
  second.record({.operation = MooncakeOperation::kLoadGet,
                 .status = MooncakeStatus::kError,
                 .seconds = 0.25,
                 .num_keys = 3,
                 .num_failed_keys = 3});
  first.aggregate(second);
  first.aggregate(MooncakeStoreStats{});
  REQUIRE(first.calls.size() == 2);
  CHECK(first.calls[0].operation == MooncakeOperation::kSavePut);
  CHECK(first.calls[1].operation == MooncakeOperation::kLoadGet);
  CHECK(first.calls[1].status == MooncakeStatus::kError);
  CHECK(first.calls[1].num_failed_keys == 3);
  CHECK_FALSE(first.empty());
  first.reset();
  CHECK(first.empty());
}

}  // namespace
}  // namespace vllm_metrics
