#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "vllm_metrics/stats/iteration_stats.h"

namespace vllm_metrics {
namespace {

using Type = EngineCoreEvent::Type;

// Everything that update_from_output() keeps of a request.
bool same(const RequestStateStats& a, const RequestStateStats& b) {
  return a.is_prefilling == b.is_prefilling &&
         a.is_corrupted == b.is_corrupted &&
         a.num_generation_tokens == b.num_generation_tokens &&
         a.num_cached_tokens == b.num_cached_tokens &&
         a.num_preemptions == b.num_preemptions && a.queued_ts == b.queued_ts &&
         a.scheduled_ts == b.scheduled_ts &&
         a.first_token_ts == b.first_token_ts &&
         a.last_token_ts == b.last_token_ts &&
         a.first_token_latency == b.first_token_latency;
}

// Outputs as an engine gives them, unusual ones more often than in life.
class Outputs {
 public:
  std::vector<EngineCoreOutput> next(std::size_t count) {
    std::vector<EngineCoreOutput> outputs(count);
    for (EngineCoreOutput& output : outputs) {
      output.num_new_tokens = once_in(50) ? -3 : once_in(4) ? 2 : 1;
      if (once_in(1000))
        output.num_new_tokens = std::numeric_limits<std::int64_t>::max();
      if (once_in(8)) output.events = kPreempted;
      if (once_in(8)) output.num_nans_in_logits = 1;
      if (once_in(3)) output.prefill_stats = PrefillStats{100, 30, 10};
    }
    return outputs;
  }

  bool once_in(std::uint32_t n) { return random_() % n == 0; }

 private:
  static constexpr EngineCoreEvent kPreempted[] = {{Type::kPreempted, 3.0},
                                                   {Type::kScheduled, 4.0}};
  std::mt19937 random_;
};

TEST_CASE(
    "IterationStats: the outputs of a step at once are its outputs one by one",
    "[stats]") {
  const std::size_t count = GENERATE(0U, 1U, 3U, 64U, 300U);
  CAPTURE(count);
  Outputs source;
  std::vector<RequestStateStats> one_by_one(count);
  std::vector<RequestStateStats> at_once(count);
  IterationStats expected;
  IterationStats step;
  for (int i = 1; i <= 20; ++i) {
    expected.reset(1000.0 + i);
    step.reset(1000.0 + i);
    step.inter_token_latencies_iter = {0.5};  // stays in front
    expected.inter_token_latencies_iter = {0.5};
    const auto outputs = source.next(count);
    for (std::size_t n = 0; n < count; ++n) {
      if (source.once_in(30)) one_by_one[n] = at_once[n] = {};
      expected.update_from_output(outputs[n], 0.1 * i, one_by_one[n]);
    }
    step.update_from_outputs(
        outputs, 0.1 * i,
        [&](std::size_t n) -> RequestStateStats& { return at_once[n]; });

    CHECK(step.num_generation_tokens == expected.num_generation_tokens);
    CHECK(step.num_preempted_reqs == expected.num_preempted_reqs);
    CHECK(step.prompt_token_stats.total == expected.prompt_token_stats.total);
    CHECK(step.time_to_first_tokens_iter == expected.time_to_first_tokens_iter);
    CHECK(step.inter_token_latencies_iter ==
          expected.inter_token_latencies_iter);
    std::size_t different = 0;
    for (std::size_t n = 0; n < count; ++n)
      different += same(at_once[n], one_by_one[n]) ? 0U : 1U;
    CHECK(different == 0);
  }
}

}  // namespace
}  // namespace vllm_metrics
