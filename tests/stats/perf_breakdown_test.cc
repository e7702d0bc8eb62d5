#include "vllm_metrics/stats/perf_breakdown.h"

#include <catch2/catch.hpp>

namespace vllm_metrics {
namespace {

TEST_CASE("PerfBreakdown: sums by name, new parts last", "[stats]") {
  PerfBreakdown total;
  total.add({.num_batches = 1, .flops = {{"a", 1.0}, {"c", 3.0}}});
  total.add({.num_batches = 1,
             .flops = {{"a", 10.0}, {"b", 20.0}, {"c", 30.0}},
             .read_bytes = {{"a", 5.0}},
             .write_bytes = {{"a", 6.0}},
             .calculation_seconds = 0.25});
  CHECK(total.num_batches == 2);
  REQUIRE(total.flops.size() == 3);
  CHECK(total.flops[0].name == "a");
  CHECK(total.flops[0].value == 11.0);
  CHECK(total.flops[1].name == "c");
  CHECK(total.flops[1].value == 33.0);
  CHECK(total.flops[2].name == "b");
  CHECK(total.flops[2].value == 20.0);
  REQUIRE(total.read_bytes.size() == 1);
  CHECK(total.read_bytes[0].value == 5.0);
  REQUIRE(total.write_bytes.size() == 1);
  CHECK(total.write_bytes[0].value == 6.0);
  CHECK(total.calculation_seconds == 0.25);
}

TEST_CASE("PerfBreakdown: adds the contexts", "[stats]") {
  PerfBreakdown step;
  step.context.add({4, 0, true});
  PerfBreakdown total;
  total.add(step);
  total.add(step);
  CHECK(total.context.num_prefill_requests == 2);
  CHECK(total.context.prefill_token_context_product == 32);
}

TEST_CASE("PerfBreakdown: clear leaves nothing but the storage", "[stats]") {
  PerfBreakdown total = {.num_batches = 3,
                         .flops = {{"a", 1.0}},
                         .read_bytes = {{"a", 1.0}},
                         .write_bytes = {{"a", 1.0}},
                         .calculation_seconds = 1.0};
  total.context.add({4, 0, true});
  total.clear();
  CHECK(total.num_batches == 0);
  CHECK(total.context.num_tokens() == 0);
  CHECK(total.flops.empty());
  CHECK(total.flops.capacity() > 0);
  CHECK(total.read_bytes.empty());
  CHECK(total.write_bytes.empty());
  CHECK(total.calculation_seconds == 0.0);
}

}  // namespace
}  // namespace vllm_metrics
