#include "vllm_metrics/stats/trace_context.h"

#include <catch2/catch.hpp>
#include <string>

#include "vllm_metrics/stats/iteration_stats.h"

namespace vllm_metrics {
namespace {

const std::string kParent =
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST_CASE("TraceContext: a traceparent is read byte by byte", "[stats]") {
  const auto context = parse_traceparent(kParent);
  REQUIRE(context.has_value());
  CHECK(context->trace_id[0] == 0x4b);
  CHECK(context->trace_id[15] == 0x36);
  CHECK(context->span_id[1] == 0xf0);
  CHECK(context->span_id[7] == 0xb7);
  CHECK(context->sampled());
  CHECK_FALSE(parse_traceparent(kParent.substr(0, 53) + "00")->sampled());
}

TEST_CASE("TraceContext: a later version may say more", "[stats]") {
  CHECK(parse_traceparent("01" + kParent.substr(2) + "-more").has_value());
  CHECK_FALSE(parse_traceparent("01" + kParent.substr(2) + "x").has_value());
}

TEST_CASE("TraceContext: what the standard calls invalid is none", "[stats]") {
  const std::string text =
      GENERATE_COPY(std::string(), kParent.substr(1), kParent + "-more",
                    "ff" + kParent.substr(2), "0X" + kParent.substr(2),
                    "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
                    "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                    "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
                    "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  CAPTURE(text);
  CHECK_FALSE(parse_traceparent(text).has_value());
}

TEST_CASE("IterationStats: trace and id of a request come out at its end",
          "[stats]") {
  RequestStateStats request;
  request.arrival_time = 100.0;
  request.trace = *parse_traceparent(kParent);
  request.request_id = "cmpl-7";
  IterationStats step;
  step.reset(100.5);
  step.update_from_output({.num_new_tokens = 1}, 7.0, request);
  step.reset(101.0);
  step.update_from_finished_request(FinishReason::kStop, request);
  REQUIRE(step.finished_requests.size() == 1);
  CHECK(step.finished_requests[0].trace == request.trace);
  CHECK(step.finished_requests[0].request_id.view() == "cmpl-7");
  CHECK(step.finished_requests[0].first_token_latency == 0.5);

  RequestStateStats never_answered;
  step.update_from_finished_request(FinishReason::kAbort, never_answered);
  CHECK_FALSE(step.finished_requests[1].first_token_latency.has_value());
  CHECK_FALSE(step.finished_requests[1].trace.valid());
}

}  // namespace
}  // namespace vllm_metrics
