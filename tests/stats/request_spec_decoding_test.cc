#include "vllm_metrics/stats/request_spec_decoding.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace vllm_metrics {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

template <class Int>
std::vector<std::int64_t> list(std::span<const Int> values) {
  return {values.begin(), values.end()};
}

using List = std::vector<std::int64_t>;

std::string json(const RequestSpecDecoding& drafts) {
  std::string out = "before ";
  drafts.append_json(out);
  return out.substr(7);
}

TEST_CASE("RequestSpecDecoding: a summary is what vLLM puts in a response",
          "[stats]") {
  RequestSpecDecoding drafts(SpecDecodingDetail::kSummary, 3);
  for (int i = 0; i < 39; ++i) drafts.observe_draft(3, 0);
  drafts.observe_draft(3, 1);
  for (int i = 0; i < 3; ++i) drafts.observe_draft(3, 3);
  CHECK(drafts.num_steps() == 43);
  CHECK(drafts.num_draft_tokens() == 129);
  CHECK(drafts.num_accepted_tokens() == 10);
  CHECK(list(drafts.acceptance_histogram()) == List{39, 1, 0, 3});
  CHECK(drafts.accepted_per_position() == List{4, 3, 3});
  CHECK(drafts.per_step_accepted().empty());
  CHECK(json(drafts) ==
        R"({"mean_acceptance_length":1.2325581395348837,)"
        R"("draft_acceptance_rate":0.07751937984496124,)"
        R"("acceptance_histogram":[39,1,0,3],"num_spec_steps":43,)"
        R"("num_accepted_draft_tokens":10,"num_draft_tokens":129,)"
        R"("num_spec_tokens":3})");
}

TEST_CASE("RequestSpecDecoding: detailed lists the steps too", "[stats]") {
  RequestSpecDecoding drafts(SpecDecodingDetail::kDetailed, 2);
  drafts.observe_draft(2, 1);
  drafts.observe_draft(1, 1);
  drafts.observe_draft(0, 0);
  drafts.observe_draft(2, 2);
  CHECK(list(drafts.per_step_accepted()) == List{1, 1, 0, 2});
  CHECK(list(drafts.per_step_drafted()) == List{2, 1, 0, 2});
  CHECK(json(drafts) ==
        R"({"mean_acceptance_length":2.0,"draft_acceptance_rate":0.8,)"
        R"("acceptance_histogram":[1,2,1],"num_spec_steps":4,)"
        R"("num_accepted_draft_tokens":4,"num_draft_tokens":5,)"
        R"("num_spec_tokens":2,"per_step_accepted":[1,1,0,2],)"
        R"("per_step_drafted":[2,1,0,2]})");
}

TEST_CASE("RequestSpecDecoding: none collects nothing and is null", "[stats]") {
  RequestSpecDecoding drafts(SpecDecodingDetail::kNone, 3);
  drafts.observe_draft(3, 2);
  CHECK(drafts.num_steps() == 0);
  CHECK(drafts.acceptance_histogram().empty());
  CHECK(drafts.accepted_per_position().empty());
  CHECK(json(drafts) == "null");
}

TEST_CASE("RequestSpecDecoding: a request without a draft has defined rates",
          "[stats]") {
  const RequestSpecDecoding drafts(SpecDecodingDetail::kDetailed, 2);
  CHECK(drafts.mean_acceptance_length() == 1.0);
  CHECK(drafts.draft_acceptance_rate() == 0.0);
  CHECK(json(drafts) ==
        R"({"mean_acceptance_length":1.0,"draft_acceptance_rate":0.0,)"
        R"("acceptance_histogram":[0,0,0],"num_spec_steps":0,)"
        R"("num_accepted_draft_tokens":0,"num_draft_tokens":0,)"
        R"("num_spec_tokens":2})");
}

TEST_CASE("RequestSpecDecoding: counts that cannot be are clamped and counted",
          "[stats]") {
  RequestSpecDecoding drafts(SpecDecodingDetail::kDetailed, 2);
  drafts.observe_draft(2, 3);
  drafts.observe_draft(-1, 0);
  drafts.observe_draft(kMax, kMax);
  drafts.observe_draft(-kMax - 1, -kMax - 1);
  CHECK(drafts.num_invalid_drafts() == 4);
  CHECK(list(drafts.per_step_accepted()) == List{2, 0, 2, 0});
  CHECK(list(drafts.per_step_drafted()) == List{2, 0, 2147483647, 0});
  CHECK(list(drafts.acceptance_histogram()) == List{2, 0, 2});
}

TEST_CASE("RequestSpecDecoding: a draft length out of range is the nearest",
          "[stats]") {
  CHECK(RequestSpecDecoding(SpecDecodingDetail::kSummary, -1)
            .acceptance_histogram()
            .size() == 1);
  CHECK(RequestSpecDecoding(SpecDecodingDetail::kSummary, kMax)
            .acceptance_histogram()
            .size() == 4097);
  RequestSpecDecoding none(SpecDecodingDetail::kSummary, 0);
  none.observe_draft(0, 0);
  CHECK(none.num_invalid_drafts() == 0);
  CHECK(none.accepted_per_position().empty());
}

TEST_CASE("RequestSpecDecoding: a long request lists its first steps",
          "[stats]") {
  constexpr auto kListed =
      static_cast<std::int64_t>(RequestSpecDecoding::kMaxListedSteps);
  RequestSpecDecoding drafts(SpecDecodingDetail::kDetailed, 1);
  for (std::int64_t i = 0; i < kListed + 10; ++i) drafts.observe_draft(1, 1);
  CHECK(drafts.num_steps() == kListed + 10);
  CHECK(drafts.num_accepted_tokens() == kListed + 10);
  CHECK(drafts.per_step_accepted().size() ==
        RequestSpecDecoding::kMaxListedSteps);
  CHECK(drafts.per_step_drafted().size() ==
        RequestSpecDecoding::kMaxListedSteps);
}

TEST_CASE("parse_spec_decoding_detail: takes the names of vLLM's option",
          "[stats]") {
  CHECK(parse_spec_decoding_detail("none") == SpecDecodingDetail::kNone);
  CHECK(parse_spec_decoding_detail("summary") == SpecDecodingDetail::kSummary);
  CHECK(parse_spec_decoding_detail("detailed") ==
        SpecDecodingDetail::kDetailed);
  CHECK_FALSE(parse_spec_decoding_detail("").has_value());
  CHECK_FALSE(parse_spec_decoding_detail("Summary").has_value());
}

}  // namespace
}  // namespace vllm_metrics
