#include <catch2/catch.hpp>
#include <vector>

#include "tests/allocation_count.h"
#include "vllm_metrics/stats/hit_rate_window.h"
#include "vllm_metrics/stats/iteration_stats.h"
#include "vllm_metrics/stats/kv_residency_sampler.h"
#include "vllm_metrics/stats/perf_breakdown.h"
#include "vllm_metrics/stats/perf_model.h"
#include "vllm_metrics/stats/spec_decoding_stats.h"

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

TEST_CASE("KvResidencySampler: a pool in steady use allocates nothing",
          "[stats]") {
  auto sampler =
      KvResidencySampler::create({.num_blocks = 4096, .sample_rate = 1.0});
  REQUIRE(sampler.has_value());
  std::vector<KvCacheEvictionEvent> events;
  const auto run_step = [&](std::int64_t step) {
    for (std::int64_t i = 0; i < 64; ++i) {
      const std::int64_t block = (step * 64 + i) % 4096;
      sampler->on_evicted(block, step);
      sampler->on_allocated(block, step);
      sampler->on_accessed(block, step);
    }
    events.clear();
    sampler->drain(events);
  };
  for (std::int64_t step = 0; step < 128; ++step) run_step(step);
  CHECK(events.size() == 64);
  CHECK(allocations_of([&] {
          for (std::int64_t step = 128; step < 1000; ++step) run_step(step);
          sampler->reset();
          for (std::int64_t step = 0; step < 128; ++step) run_step(step);
        }) == 0);
}

TEST_CASE("PerfModel: an estimate allocates nothing, a breakdown once",
          "[stats]") {
  const auto model = PerfModel::create({.num_hidden_layers = 2,
                                        .hidden_size = 8,
                                        .num_attention_heads = 2,
                                        .num_kv_heads = 1,
                                        .head_dim = 4,
                                        .vocab_size = 16,
                                        .intermediate_size = 32});
  REQUIRE(model.has_value());
  const std::vector<ScheduledRequest> requests(
      256, {.num_scheduled_tokens = 1, .num_computed_tokens = 100});
  double flops = 0.0;
  CHECK(allocations_of(
            [&] { flops = model->estimate(requests).num_flops_per_gpu; }) == 0);
  CHECK(flops > 0.0);

  PerfContext context;
  context.add(requests[0]);
  PerfBreakdown step;
  PerfBreakdown total;
  (void)model->estimate(context, step);
  total.add(step);
  CHECK(allocations_of([&] {
          for (int i = 0; i < 100; ++i) {
            (void)model->estimate(context, step);
            total.add(step);
          }
        }) == 0);
  CHECK(total.num_batches == 101);
}

TEST_CASE("SpecDecodingStats: allocates for the first draft and never again",
          "[stats]") {
  SpecDecodingStats stats = {.num_spec_tokens = 4};
  CHECK(allocations_of([&] { stats.observe_draft(4, 2); }) == 1);
  CHECK(allocations_of([&] {
          for (int i = 0; i < 1000; ++i) {
            stats.reset();
            stats.observe_draft(4, i % 5);
          }
        }) == 0);
}

}  // namespace
}  // namespace vllm_metrics
