#include <catch2/catch.hpp>
#include <vector>

#include "tests/allocation_count.h"
#include "vllm_metrics/stats/hit_rate_window.h"
#include "vllm_metrics/stats/iteration_stats.h"

namespace vllm_metrics {
namespace {

// A step in which 64 requests get an output and 8 of them end and begin anew.
void run_step(IterationStats& step, std::vector<RequestStateStats>& requests,
              double now) {
  step.reset(now);
  for (auto& request : requests) {
    step.update_from_output(
        {.num_new_tokens = 1, .prefill_stats = PrefillStats{100, 10, 0}}, now,
        request);
  }
  for (std::size_t i = 0; i < 8; ++i) {
    step.update_from_finished_request(FinishReason::kStop, requests[i]);
    requests[i] = {};
  }
}

TEST_CASE("IterationStats: a step like the ones before allocates nothing",
          "[stats]") {
  IterationStats step;
  std::vector<RequestStateStats> requests(64);
  CHECK(allocations_of([&] { run_step(step, requests, 0.0); }) > 0);
  for (int i = 1; i < 8; ++i) run_step(step, requests, i);
  CHECK(allocations_of([&] {
          for (int i = 8; i < 100; ++i) run_step(step, requests, i);
        }) == 0);
}

TEST_CASE("HitRateWindow: allocates at the first lookup and never again",
          "[stats]") {
  HitRateWindow window;
  CHECK(allocations_of([&] { window.observe({}); }) == 0);
  CHECK(allocations_of([&] {
          window.observe({.requests = 1, .queries = 2, .hits = 1});
        }) == 1);
  CHECK(allocations_of([&] {
          for (int i = 0; i < 5000; ++i) {
            window.observe({.reset = i % 1700 == 0,
                            .requests = i % 3,
                            .queries = 20,
                            .hits = 10});
          }
        }) == 0);
  CHECK(window.hit_rate() == 0.5);
}

}  // namespace
}  // namespace vllm_metrics
