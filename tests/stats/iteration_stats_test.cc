#include "vllm_metrics/stats/iteration_stats.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace vllm_metrics {
namespace {

using Type = EngineCoreEvent::Type;
using Seconds = std::vector<double>;
using Counts = std::vector<std::int64_t>;
using Events = std::vector<EngineCoreEvent>;

constexpr std::optional<double> kUnset = std::nullopt;

// A step whose outputs arrived at `now` on the wall clock.
IterationStats step_at(double now) {
  IterationStats step;
  step.reset(now);
  return step;
}

EngineCoreOutput tokens(std::int64_t n) { return {.num_new_tokens = n}; }

// The output of a step in which only `events` happened to a request, beside
// `n` new tokens.
void give(IterationStats& step, RequestStateStats& request, double ts,
          std::int64_t n, const Events& events) {
  step.update_from_output({.num_new_tokens = n, .events = events}, ts, request);
}

TEST_CASE("IterationStats: the first output gives TTFT, later ones ITL",
          "[stats]") {
  RequestStateStats request{.arrival_time = 1000.0};
  auto first = step_at(1000.25);
  first.update_from_output(tokens(1), 50.0, request);
  CHECK(first.time_to_first_tokens_iter == Seconds{0.25});
  CHECK(first.inter_token_latencies_iter.empty());
  CHECK(request.first_token_latency == 0.25);
  CHECK(request.first_token_ts == 50.0);
  CHECK(request.last_token_ts == 50.0);
  CHECK_FALSE(request.is_prefilling);

  auto second = step_at(1000.3);
  second.update_from_output(tokens(1), 50.125, request);
  CHECK(second.time_to_first_tokens_iter.empty());
  CHECK(second.inter_token_latencies_iter == Seconds{0.125});
  CHECK(request.first_token_ts == 50.0);
  CHECK(request.last_token_ts == 50.125);
  CHECK(request.first_token_latency == 0.25);
}

TEST_CASE("IterationStats: a first output without a token still gives TTFT",
          "[stats]") {
  RequestStateStats request{.arrival_time = 10.0};
  auto step = step_at(10.5);
  step.update_from_output(tokens(0), 1.0, request);
  CHECK(step.time_to_first_tokens_iter == Seconds{0.5});
  CHECK(step.num_generation_tokens == 0);
  CHECK(request.num_generation_tokens == 0);
  CHECK_FALSE(request.is_prefilling);
}

TEST_CASE("IterationStats: a stamp of exactly 0 is a stamp", "[stats]") {
  RequestStateStats request;
  auto step = step_at(0.0);
  give(step, request, 0.0, 1, {{Type::kQueued, 0.0}, {Type::kScheduled, 0.0}});
  CHECK(request.queued_ts == 0.0);
  CHECK(request.scheduled_ts == 0.0);
  CHECK(request.first_token_ts == 0.0);
  step.update_from_output(tokens(1), 0.5, request);
  CHECK(step.inter_token_latencies_iter == Seconds{0.5});
  give(step, request, 0.75, 1, {{Type::kScheduled, 0.625}});
  CHECK(request.scheduled_ts == 0.0);
  step.update_from_finished_request(FinishReason::kStop, request);
  const auto& finished = step.finished_requests.front();
  CHECK(finished.queued_time == 0.0);
  CHECK(finished.prefill_time == 0.0);
  CHECK(finished.decode_time == 0.75);
  CHECK(finished.inference_time == 0.75);
}

// One gap, undivided, however many tokens an output brings.
TEST_CASE("IterationStats: an output of several tokens is one latency",
          "[stats]") {
  const std::int64_t n = GENERATE(0, 1, 3, 8);
  RequestStateStats request;
  auto step = step_at(0.0);
  step.update_from_output(tokens(1), 10.0, request);
  step.reset(0.0);
  step.update_from_output(tokens(n), 10.060, request);
  CHECK(step.inter_token_latencies_iter == Seconds{10.060 - 10.0});
  CHECK(step.num_generation_tokens == n);
  CHECK(request.num_generation_tokens == 1 + n);
}

TEST_CASE("IterationStats: prompt tokens count with the first output only",
          "[stats]") {
  const PrefillStats prefill{.num_prompt_tokens = 312,
                             .num_local_cached_tokens = 240,
                             .num_external_cached_tokens = 56};
  RequestStateStats request;
  auto step = step_at(0.0);
  const EngineCoreOutput output{.num_new_tokens = 1, .prefill_stats = prefill};
  step.update_from_output(output, 1.0, request);
  step.update_from_output(output, 2.0, request);
  CHECK(step.prompt_token_stats.total == 312);
  CHECK(step.prompt_token_stats.computed == 16);
  CHECK(request.num_cached_tokens == 296);

  RequestStateStats without;
  step.update_from_output(tokens(1), 1.0, without);
  CHECK(step.prompt_token_stats.total == 312);
  CHECK(without.num_cached_tokens == 0);
}

TEST_CASE(
    "IterationStats: QUEUED counts each time, SCHEDULED the first time, "
    "across outputs",
    "[stats]") {
  RequestStateStats request;
  auto step = step_at(0.0);
  give(step, request, 5.0, 1,
       {{Type::kQueued, 1.0},
        {Type::kQueued, 2.0},
        {Type::kScheduled, 3.0},
        {Type::kScheduled, 4.0}});
  CHECK(request.queued_ts == 2.0);
  CHECK(request.scheduled_ts == 3.0);
  give(
      step, request, 9.0, 1,
      {{Type::kPreempted, 6.0}, {Type::kQueued, 7.0}, {Type::kScheduled, 8.0}});
  CHECK(request.queued_ts == 7.0);
  CHECK(request.scheduled_ts == 3.0);
}

TEST_CASE("IterationStats: a preemption counts for the step and the request",
          "[stats]") {
  RequestStateStats often;
  RequestStateStats once;
  auto step = step_at(0.0);
  give(step, often, 1.0, 1, {{Type::kPreempted, 0.1}, {Type::kPreempted, 0.2}});
  give(step, once, 1.0, 1, {{Type::kPreempted, 0.3}});
  CHECK(step.num_preempted_reqs == 3);
  CHECK(often.num_preemptions == 2);
  CHECK(once.num_preemptions == 1);
  step.reset(1.0);
  CHECK(step.num_preempted_reqs == 0);
  give(step, often, 2.0, 1, {{Type::kPreempted, 1.5}});
  step.update_from_finished_request(FinishReason::kLength, often);
  CHECK(step.finished_requests.front().num_preemptions == 3);
}

TEST_CASE("IterationStats: preemptions are timed from the first SCHEDULED",
          "[stats]") {
  const auto times = [](const RequestStateStats& given) {
    RequestStateStats request = given;
    auto step = step_at(0.0);
    step.update_from_finished_request(FinishReason::kStop, request);
    const auto kept = step.finished_requests.front().preemption_times.seconds();
    return Seconds(kept.begin(), kept.end());
  };
  RequestStateStats request;
  auto step = step_at(0.0);
  give(
      step, request, 2.0, 1,
      {{Type::kQueued, 0.5}, {Type::kScheduled, 1.0}, {Type::kPreempted, 1.5}});
  give(step, request, 4.0, 1,
       {{Type::kScheduled, 2.5}, {Type::kPreempted, 3.25}});
  CHECK(times(request) == Seconds{0.5, 2.25});
  for (int i = 0; i < 10; ++i)
    give(step, request, 5.0, 1, {{Type::kPreempted, 4.5}});
  CHECK(times(request) == Seconds{0.5, 2.25, 3.5, 3.5, 3.5, 3.5, 3.5, 3.5});
  CHECK(request.num_preemptions == 12);

  RequestStateStats never_scheduled;
  give(step, never_scheduled, 1.0, 1, {{Type::kPreempted, 0.5}});
  CHECK(times(never_scheduled).empty());
}

TEST_CASE(
    "IterationStats: a request with NaN logits is corrupted, counted "
    "once, when it ends",
    "[stats]") {
  RequestStateStats corrupted;
  RequestStateStats sound;
  auto step = step_at(0.0);
  step.update_from_output({.num_new_tokens = 1, .num_nans_in_logits = 2}, 1.0,
                          corrupted);
  step.update_from_output({.num_new_tokens = 1, .num_nans_in_logits = 0}, 2.0,
                          corrupted);
  step.update_from_output({.num_new_tokens = 1, .num_nans_in_logits = 1}, 3.0,
                          corrupted);
  step.update_from_output(tokens(1), 1.0, sound);
  CHECK(corrupted.is_corrupted);
  CHECK_FALSE(sound.is_corrupted);
  CHECK(step.num_corrupted_reqs == 0);
  step.update_from_finished_request(FinishReason::kStop, corrupted);
  step.update_from_finished_request(FinishReason::kStop, sound);
  CHECK(step.num_corrupted_reqs == 1);
  CHECK(step.finished_requests[0].is_corrupted);
  CHECK_FALSE(step.finished_requests[1].is_corrupted);
}

TEST_CASE("IterationStats: a finished request has its phases and its shape",
          "[stats]") {
  RequestStateStats request{
      .arrival_time = 1000.0, .num_prompt_tokens = 512, .max_tokens_param = 64};
  auto step = step_at(1001.0);
  const Events events{{Type::kQueued, 10.0}, {Type::kScheduled, 10.5}};
  step.update_from_output({.num_new_tokens = 1,
                           .events = events,
                           .prefill_stats = PrefillStats{512, 480, 16}},
                          12.0, request);
  step.update_from_output(tokens(3), 14.0, request);
  step.reset(1005.5);
  step.update_from_output(tokens(1), 16.0, request);
  step.update_from_finished_request(FinishReason::kLength, request);
  REQUIRE(step.finished_requests.size() == 1);
  const FinishedRequestStats& finished = step.finished_requests.front();
  CHECK(finished.finish_reason == FinishReason::kLength);
  CHECK(finished.e2e_latency == 5.5);
  CHECK(finished.queued_time == 0.5);
  CHECK(finished.prefill_time == 1.5);
  CHECK(finished.decode_time == 4.0);
  CHECK(finished.inference_time == 5.5);
  CHECK(finished.mean_time_per_output_token == 1.0);
  CHECK(finished.num_prompt_tokens == 512);
  CHECK(finished.num_generation_tokens == 5);
  CHECK(finished.num_cached_tokens == 496);
  CHECK(finished.max_tokens_param == 64);
  CHECK(finished.num_preemptions == 0);
  CHECK(step.n_params_iter == Counts{1});
  CHECK(step.max_num_generation_tokens_iter == Counts{5});
}

// max_tokens = 1 made the mean time per output token a division by zero.
TEST_CASE("IterationStats: below two tokens the time per output token is 0",
          "[stats]") {
  const auto [n, expected] = GENERATE(values<std::pair<std::int64_t, double>>(
      {{0, 0.0}, {1, 0.0}, {2, 0.4}, {5, 0.4 / 4}}));
  RequestStateStats request;
  auto step = step_at(0.0);
  step.update_from_output(tokens(n > 0 ? 1 : 0), 0.0, request);
  step.update_from_output(tokens(n > 0 ? n - 1 : 0), 0.4, request);
  step.update_from_finished_request(FinishReason::kStop, request);
  CHECK(step.finished_requests[0].num_generation_tokens == n);
  CHECK(step.finished_requests[0].mean_time_per_output_token == expected);
}

TEST_CASE("IterationStats: a phase without its stamps is unset, not 0",
          "[stats]") {
  RequestStateStats request{.arrival_time = 1.0};
  auto step = step_at(3.0);
  SECTION("no events, two outputs") {
    step.update_from_output(tokens(1), 50.0, request);
    step.update_from_output(tokens(1), 50.5, request);
    step.update_from_finished_request(FinishReason::kStop, request);
    const auto& finished = step.finished_requests.front();
    CHECK(finished.queued_time == kUnset);
    CHECK(finished.prefill_time == kUnset);
    CHECK(finished.inference_time == kUnset);
    CHECK(finished.decode_time == 0.5);
    CHECK(finished.mean_time_per_output_token == 0.5);
    CHECK(finished.e2e_latency == 2.0);
  }
  SECTION("nothing but an arrival") {
    step.update_from_finished_request(FinishReason::kError, request);
    const auto& finished = step.finished_requests.front();
    CHECK(finished.queued_time == kUnset);
    CHECK(finished.prefill_time == kUnset);
    CHECK(finished.inference_time == kUnset);
    CHECK(finished.decode_time == kUnset);
    CHECK(finished.mean_time_per_output_token == 0.0);
    CHECK(finished.e2e_latency == 2.0);
  }
  SECTION("scheduled but never queued") {
    give(step, request, 50.0, 1, {{Type::kScheduled, 48.0}});
    step.update_from_finished_request(FinishReason::kStop, request);
    const auto& finished = step.finished_requests.front();
    CHECK(finished.queued_time == kUnset);
    CHECK(finished.prefill_time == 2.0);
    CHECK(finished.inference_time == 2.0);
    CHECK(finished.decode_time == 0.0);
  }
}

TEST_CASE(
    "IterationStats: clocks that go back give negative values, for the "
    "recorder to judge",
    "[stats]") {
  RequestStateStats request{.arrival_time = 100.0};
  auto step = step_at(99.5);
  give(step, request, 50.0, 1,
       {{Type::kQueued, 52.0}, {Type::kScheduled, 51.0}});
  step.update_from_output(tokens(1), 49.0, request);
  step.update_from_finished_request(FinishReason::kStop, request);
  CHECK(step.time_to_first_tokens_iter == Seconds{-0.5});
  CHECK(step.inter_token_latencies_iter == Seconds{-1.0});
  CHECK(step.finished_requests[0].e2e_latency == -0.5);
  CHECK(step.finished_requests[0].queued_time == -1.0);
  CHECK(step.finished_requests[0].prefill_time == -1.0);
  CHECK(step.finished_requests[0].decode_time == -1.0);
}

TEST_CASE("IterationStats: negative numbers of tokens stay signed", "[stats]") {
  RequestStateStats request;
  auto step = step_at(0.0);
  step.update_from_output(
      {.num_new_tokens = 1, .prefill_stats = PrefillStats{81, -16, 80}}, 1.0,
      request);
  CHECK(step.prompt_token_stats.local_cache_hit == -16);
  CHECK(step.prompt_token_stats.computed == 17);
  CHECK(step.prompt_token_stats.external_kv_transfer == 80);
  CHECK(step.prompt_token_stats.total == 81);
  CHECK(request.num_cached_tokens == 64);
}

TEST_CASE("IterationStats: reset leaves nothing of the step but its new stamp",
          "[stats]") {
  RequestStateStats request;
  auto step = step_at(1.0);
  step.update_from_output({.num_new_tokens = 2,
                           .prefill_stats = PrefillStats{9, 1, 1},
                           .num_nans_in_logits = 1},
                          1.0, request);
  give(step, request, 2.0, 1, {{Type::kPreempted, 1.5}});
  step.update_from_finished_request(FinishReason::kStop, request);
  step.reset(77.0);
  CHECK(step.iteration_timestamp == 77.0);
  CHECK(step.num_generation_tokens == 0);
  CHECK(step.num_preempted_reqs == 0);
  CHECK(step.num_corrupted_reqs == 0);
  CHECK(step.prompt_token_stats.total == 0);
  CHECK(step.prompt_token_stats.computed == 0);
  CHECK(step.prompt_token_stats.cached_tokens == 0);
  CHECK(step.finished_requests.empty());
  CHECK(step.max_num_generation_tokens_iter.empty());
  CHECK(step.n_params_iter.empty());
  CHECK(step.time_to_first_tokens_iter.empty());
  CHECK(step.inter_token_latencies_iter.empty());
}

}  // namespace
}  // namespace vllm_metrics
