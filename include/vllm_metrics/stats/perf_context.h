#pragma once

#include <cstdint>
#include <limits>

namespace vllm_metrics::inline v0 {

// One request's share of a step.
struct ScheduledRequest {
  std::int64_t num_scheduled_tokens = 0;  // below 1: not in this step
  // Of the sequence, before this step; cached tokens count too.
  std::int64_t num_computed_tokens = 0;
  bool is_new = false;  // scheduled for the first time
};

// What the cost of a step depends on: sums over its requests. n is a request's
// tokens in this step, c its context, that is n and the tokens before. A
// request is in prefill when it is new or has more than one token.
//
// Errors: none. Sums stay at the largest integer instead of overflowing, and
// what is negative counts as 0.
// Definition: vLLM ExecutionContext. vLLM v1/metrics/perf.py.
struct PerfContext {
  std::int64_t num_prefill_requests = 0;
  std::int64_t prefill_num_tokens = 0;             // sum of n
  std::int64_t prefill_context_len = 0;            // sum of c
  std::int64_t prefill_token_context_product = 0;  // sum of n * c
  std::int64_t num_decode_requests = 0;
  std::int64_t decode_num_tokens = 0;
  std::int64_t decode_context_len = 0;
  std::int64_t decode_token_context_product = 0;

  void add(const ScheduledRequest& request) noexcept {
    const std::int64_t n = request.num_scheduled_tokens;
    if (n <= 0) return;
    const std::int64_t c = sum(n, request.num_computed_tokens);
    const std::int64_t product = product_of(n, c);
    if (request.is_new || n > 1) {
      num_prefill_requests = sum(num_prefill_requests, 1);
      prefill_num_tokens = sum(prefill_num_tokens, n);
      prefill_context_len = sum(prefill_context_len, c);
      prefill_token_context_product =
          sum(prefill_token_context_product, product);
    } else {
      num_decode_requests = sum(num_decode_requests, 1);
      decode_num_tokens = sum(decode_num_tokens, n);
      decode_context_len = sum(decode_context_len, c);
      decode_token_context_product = sum(decode_token_context_product, product);
    }
  }

  // Adds the sums of another step.
  void merge(const PerfContext& other) noexcept {
    num_prefill_requests =
        sum(num_prefill_requests, other.num_prefill_requests);
    prefill_num_tokens = sum(prefill_num_tokens, other.prefill_num_tokens);
    prefill_context_len = sum(prefill_context_len, other.prefill_context_len);
    prefill_token_context_product =
        sum(prefill_token_context_product, other.prefill_token_context_product);
    num_decode_requests = sum(num_decode_requests, other.num_decode_requests);
    decode_num_tokens = sum(decode_num_tokens, other.decode_num_tokens);
    decode_context_len = sum(decode_context_len, other.decode_context_len);
    decode_token_context_product =
        sum(decode_token_context_product, other.decode_token_context_product);
  }

  std::int64_t num_tokens() const noexcept {
    return sum(prefill_num_tokens, decode_num_tokens);
  }
  std::int64_t token_context_product() const noexcept {
    return sum(prefill_token_context_product, decode_token_context_product);
  }
  // Tokens that get logits: the last one of each prefill, and every decode.
  std::int64_t num_logits_tokens() const noexcept {
    return sum(num_prefill_requests, decode_num_tokens);
  }

 private:
  static constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

  static constexpr std::int64_t sum(std::int64_t a, std::int64_t b) noexcept {
    a = a > 0 ? a : 0;
    b = b > 0 ? b : 0;
    return a <= kMax - b ? a + b : kMax;
  }

  // Of positive numbers.
  static constexpr std::int64_t product_of(std::int64_t a,
                                           std::int64_t b) noexcept {
    constexpr std::int64_t kNoOverflow = 0x7FFFFFFF;  // no division needed
    if (a <= kNoOverflow && b <= kNoOverflow) return a * b;
    return a <= kMax / b ? a * b : kMax;
  }
};

}  // namespace vllm_metrics::inline v0
