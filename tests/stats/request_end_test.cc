// How a request ends: alone or as one of n, in a step or outside of one, with
// or without a trace.

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "vllm_metrics/stats/iteration_stats.h"

namespace vllm_metrics {
namespace {

using Type = EngineCoreEvent::Type;
using Counts = std::vector<std::int64_t>;
using Events = std::vector<EngineCoreEvent>;

constexpr std::optional<double> kUnset = std::nullopt;

IterationStats step_at(double now) {
  IterationStats step;
  step.reset(now);
  return step;
}

void output(IterationStats& step, RequestStateStats& request, double ts,
            std::int64_t n, const Events& events = {}) {
  step.update_from_output({.num_new_tokens = n, .events = events}, ts, request);
}

// `n` sequences of one request, with as many tokens as `lengths` says.
std::vector<RequestStateStats> family_of(const Counts& lengths) {
  auto parent = std::make_shared<ParentRequest>(
      static_cast<std::int64_t>(lengths.size()));
  std::vector<RequestStateStats> children;
  for (const auto length : lengths) {
    children.push_back({.parent = parent, .num_generation_tokens = length});
  }
  return children;
}

TEST_CASE("ParentRequest: is complete with its last child", "[stats]") {
  ParentRequest parent(3);
  CHECK(parent.n() == 3);
  CHECK_FALSE(parent.child_ended(5));
  CHECK_FALSE(parent.child_ended(9));
  CHECK(parent.child_ended(2));
  CHECK(parent.max_num_generation_tokens() == 9);
}

TEST_CASE(
    "IterationStats: of n sequences the longest and n count once, with "
    "the last",
    "[stats]") {
  auto children = family_of({4, 9, 2});
  auto step = step_at(0.0);
  step.update_from_finished_request(FinishReason::kStop, children[1]);
  step.update_from_finished_request(FinishReason::kStop, children[0]);
  CHECK(step.n_params_iter.empty());
  CHECK(step.finished_requests.size() == 2);
  step.reset(1.0);
  step.update_from_finished_request(FinishReason::kLength, children[2]);
  CHECK(step.n_params_iter == Counts{3});
  CHECK(step.max_num_generation_tokens_iter == Counts{9});
  CHECK(step.finished_requests.size() == 1);
}

TEST_CASE("IterationStats: requests with n = 1 and others may end in one step",
          "[stats]") {
  auto children = family_of({4, 6});
  RequestStateStats alone{.num_generation_tokens = 11};
  auto step = step_at(0.0);
  step.update_from_finished_request(FinishReason::kStop, children[0]);
  step.update_from_finished_request(FinishReason::kStop, alone);
  step.update_from_finished_request(FinishReason::kStop, children[1]);
  CHECK(step.n_params_iter == Counts{1, 2});
  CHECK(step.max_num_generation_tokens_iter == Counts{11, 6});
}

TEST_CASE("drop_request: leaves no trace, and the siblings can complete",
          "[stats]") {
  auto children = family_of({4, 9, 2});
  auto step = step_at(0.0);
  step.update_from_finished_request(FinishReason::kStop, children[0]);
  drop_request(children[1]);
  step.update_from_finished_request(FinishReason::kStop, children[2]);
  CHECK(step.finished_requests.size() == 2);
  CHECK(step.n_params_iter == Counts{3});
  CHECK(step.max_num_generation_tokens_iter == Counts{4});
}

TEST_CASE(
    "drop_request: when the last sequence is dropped, no step sees the "
    "request end",
    "[stats]") {
  auto children = family_of({4, 9});
  auto step = step_at(0.0);
  step.update_from_finished_request(FinishReason::kStop, children[0]);
  drop_request(children[1]);
  CHECK(step.n_params_iter.empty());
  CHECK(step.max_num_generation_tokens_iter.empty());
}

// A second call counted for a sibling, and the parent completed too early.
TEST_CASE("drop_request: twice is as once", "[stats]") {
  auto children = family_of({4, 9, 2});
  drop_request(children[0]);
  drop_request(children[0]);
  RequestStateStats alone;
  drop_request(alone);
  drop_request(alone);
  auto step = step_at(0.0);
  step.update_from_finished_request(FinishReason::kStop, children[1]);
  CHECK(step.n_params_iter.empty());
  step.update_from_finished_request(FinishReason::kStop, children[2]);
  CHECK(step.n_params_iter == Counts{3});
}

TEST_CASE(
    "IterationStats: a request that ends while waiting has queued until "
    "then, and nothing else",
    "[stats]") {
  // No output has brought the event; the engine stamps it itself.
  RequestStateStats request{
      .arrival_time = 1000.0, .num_prompt_tokens = 602, .queued_ts = 10.0};
  auto step = step_at(1003.0);
  step.update_from_ended_request(FinishReason::kAbort, 12.5, request);
  REQUIRE(step.finished_requests.size() == 1);
  const auto& finished = step.finished_requests.front();
  CHECK(finished.finish_reason == FinishReason::kAbort);
  CHECK(finished.e2e_latency == 3.0);
  CHECK(finished.queued_time == 2.5);
  CHECK(finished.prefill_time == kUnset);
  CHECK(finished.inference_time == kUnset);
  CHECK(finished.decode_time == kUnset);
  CHECK(finished.mean_time_per_output_token == 0.0);
  CHECK(finished.num_prompt_tokens == 602);
  CHECK(finished.num_generation_tokens == 0);
  CHECK(step.n_params_iter == Counts{1});
  CHECK(step.max_num_generation_tokens_iter == Counts{0});
}

TEST_CASE(
    "IterationStats: a request queued at 0 and ended while waiting has "
    "queued since 0",
    "[stats]") {
  RequestStateStats request{.queued_ts = 0.0};
  auto step = step_at(0.0);
  step.update_from_ended_request(FinishReason::kAbort, 12.5, request);
  CHECK(step.finished_requests[0].queued_time == 12.5);
  RequestStateStats never_queued;
  step.update_from_ended_request(FinishReason::kAbort, 12.5, never_queued);
  CHECK(step.finished_requests[1].queued_time == kUnset);
}

TEST_CASE(
    "IterationStats: a request that ends scheduled but without a token "
    "has its queue time only",
    "[stats]") {
  RequestStateStats request{
      .arrival_time = 1000.0, .queued_ts = 10.0, .scheduled_ts = 11.0};
  auto step = step_at(1003.0);
  step.update_from_ended_request(FinishReason::kError, 12.5, request);
  const auto& finished = step.finished_requests.front();
  CHECK(finished.finish_reason == FinishReason::kError);
  CHECK(finished.queued_time == 1.0);
  CHECK(finished.prefill_time == kUnset);
  CHECK(finished.inference_time == kUnset);
  CHECK(finished.decode_time == kUnset);
}

TEST_CASE(
    "IterationStats: a request that ends while decoding is measured to "
    "its last output",
    "[stats]") {
  RequestStateStats request{.arrival_time = 1000.0};
  auto step = step_at(1001.0);
  output(step, request, 12.0, 1,
         {{Type::kQueued, 10.0}, {Type::kScheduled, 11.0}});
  output(step, request, 13.0, 2);
  step.reset(1009.0);
  step.update_from_ended_request(FinishReason::kAbort, 19.0, request);
  const auto& finished = step.finished_requests.front();
  CHECK(finished.e2e_latency == 9.0);
  CHECK(finished.queued_time == 1.0);
  CHECK(finished.prefill_time == 1.0);
  CHECK(finished.decode_time == 1.0);
  CHECK(finished.inference_time == 2.0);
  CHECK(finished.mean_time_per_output_token == 0.5);
  CHECK(finished.num_generation_tokens == 3);
  CHECK(step.num_generation_tokens == 0);
}

// It had queued "until its end", seconds after its first token.
TEST_CASE(
    "IterationStats: a request with outputs was not waiting, though "
    "SCHEDULED was never told",
    "[stats]") {
  RequestStateStats request;
  auto step = step_at(0.0);
  output(step, request, 12.0, 1, {{Type::kQueued, 10.0}});
  step.update_from_ended_request(FinishReason::kAbort, 19.0, request);
  CHECK(step.finished_requests[0].queued_time == kUnset);
  CHECK(step.finished_requests[0].decode_time == 0.0);
}

TEST_CASE(
    "IterationStats: an end outside a step completes the request of n, "
    "and counts a corrupted one",
    "[stats]") {
  auto children = family_of({4, 9});
  children[1].is_corrupted = true;
  auto step = step_at(0.0);
  step.update_from_ended_request(FinishReason::kAbort, 1.0, children[0]);
  CHECK(step.num_corrupted_reqs == 0);
  step.update_from_ended_request(FinishReason::kAbort, 1.0, children[1]);
  CHECK(step.num_corrupted_reqs == 1);
  CHECK(step.n_params_iter == Counts{2});
  CHECK(step.max_num_generation_tokens_iter == Counts{9});
}

// Clients hang up: the token counters had risen, and no request family had.
TEST_CASE(
    "IterationStats: five requests aborted after their first token are "
    "on every family of requests",
    "[stats]") {
  std::vector<RequestStateStats> requests(
      5, {.arrival_time = 1000.0, .num_prompt_tokens = 602});
  auto step = step_at(1001.0);
  for (auto& request : requests) {
    step.update_from_output(
        {.num_new_tokens = 1, .prefill_stats = PrefillStats{602, 0, 0}}, 5.0,
        request);
  }
  CHECK(step.prompt_token_stats.total == 3010);
  step.reset(1002.0);
  for (auto& request : requests) {
    step.update_from_ended_request(FinishReason::kAbort, 6.0, request);
  }
  REQUIRE(step.finished_requests.size() == 5);
  std::int64_t prompt_tokens = 0;
  for (const auto& finished : step.finished_requests) {
    CHECK(finished.finish_reason == FinishReason::kAbort);
    CHECK(finished.e2e_latency == 2.0);
    prompt_tokens += finished.num_prompt_tokens;
  }
  CHECK(prompt_tokens == 3010);
}

TEST_CASE("name_of: finish reasons are called as on the wire, in vLLM's order",
          "[stats]") {
  CHECK(name_of(FinishReason::kStop) == "stop");
  CHECK(name_of(FinishReason::kLength) == "length");
  CHECK(name_of(FinishReason::kAbort) == "abort");
  CHECK(name_of(FinishReason::kError) == "error");
  CHECK(name_of(FinishReason::kRepetition) == "repetition");
  CHECK(static_cast<int>(FinishReason::kStop) == 0);
  CHECK(static_cast<int>(FinishReason::kRepetition) == 4);
}

}  // namespace
}  // namespace vllm_metrics
