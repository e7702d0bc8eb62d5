#include "vllm_metrics/stats/perf_context.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>

namespace vllm_metrics {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

TEST_CASE("PerfContext: new requests and chunks are prefill, the rest decode",
          "[stats]") {
  PerfContext context;
  context.add({1, 30, true});      // new, one token left of the prompt
  context.add({512, 100, false});  // a chunk
  context.add({1, 1023, false});
  context.add({1, 0, false});
  CHECK(context.num_prefill_requests == 2);
  CHECK(context.prefill_num_tokens == 513);
  CHECK(context.prefill_context_len == 31 + 612);
  CHECK(context.prefill_token_context_product == 31 + 512 * 612);
  CHECK(context.num_decode_requests == 2);
  CHECK(context.decode_num_tokens == 2);
  CHECK(context.decode_context_len == 1025);
  CHECK(context.decode_token_context_product == 1025);
  CHECK(context.num_tokens() == 515);
  CHECK(context.token_context_product() == 31 + 512 * 612 + 1025);
  CHECK(context.num_logits_tokens() == 4);
}

TEST_CASE("PerfContext: a request without tokens is not in the step",
          "[stats]") {
  PerfContext context;
  context.add({0, 100, true});
  context.add({-7, 100, false});
  CHECK(context.num_prefill_requests == 0);
  CHECK(context.num_decode_requests == 0);
  CHECK(context.num_tokens() == 0);
}

TEST_CASE("PerfContext: sums stay at the largest integer", "[stats]") {
  PerfContext context;
  context.add({kMax, kMax, true});
  context.add({kMax, -kMax - 1, true});
  context.add({1, kMax, false});
  CHECK(context.prefill_num_tokens == kMax);
  CHECK(context.prefill_context_len == kMax);
  CHECK(context.prefill_token_context_product == kMax);
  CHECK(context.decode_context_len == kMax);
  CHECK(context.num_tokens() == kMax);
  CHECK(context.token_context_product() == kMax);
  CHECK(context.num_logits_tokens() == 3);
}

TEST_CASE("PerfContext: what is negative counts as 0", "[stats]") {
  PerfContext context;
  context.prefill_num_tokens = -kMax - 1;
  context.decode_num_tokens = -kMax - 1;
  CHECK(context.num_tokens() == 0);
  context.add({3, -100, true});
  CHECK(context.prefill_num_tokens == 3);
  CHECK(context.prefill_context_len == 3);
}

TEST_CASE("PerfContext: adds up over steps", "[stats]") {
  PerfContext step;
  step.add({4, 0, true});
  step.add({1, 9, false});
  PerfContext total;
  total.merge(step);
  total.merge(step);
  CHECK(total.num_prefill_requests == 2);
  CHECK(total.prefill_num_tokens == 8);
  CHECK(total.prefill_context_len == 8);
  CHECK(total.prefill_token_context_product == 32);
  CHECK(total.num_decode_requests == 2);
  CHECK(total.decode_num_tokens == 2);
  CHECK(total.decode_context_len == 20);
  CHECK(total.decode_token_context_product == 20);
}

}  // namespace
}  // namespace vllm_metrics
