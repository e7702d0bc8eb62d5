#pragma once

#include <algorithm>
#include <cstdint>

#include "vllm_metrics/stats/saturating_add.h"

namespace vllm_metrics::inline v0 {

// Where the prompt tokens of one request came from. Unit: tokens.
// Definition: vLLM PrefillStats. vLLM v1/metrics/stats.py.
struct PrefillStats {
  std::int64_t num_prompt_tokens = 0;
  // Found in this engine's prefix cache.
  std::int64_t num_local_cached_tokens = 0;
  std::int64_t num_external_cached_tokens = 0;  // brought by a KV connector
  // Of these, by where they were; what is left came from a place not told.
  std::int64_t num_host_cached_tokens = 0;  // the CPU's memory
  std::int64_t num_p2p_cached_tokens = 0;   // another engine
  std::int64_t num_disk_cached_tokens = 0;

  std::int64_t num_cached_tokens() const noexcept {
    return saturating_add(num_local_cached_tokens, num_external_cached_tokens);
  }
  std::int64_t num_computed_tokens() const noexcept {
    return saturating_sub(num_prompt_tokens, num_cached_tokens());
  }
};

// The prompt tokens of all requests that got their first output in a step, by
// source: computed + local_cache_hit + external_kv_transfer = total.
// Definition: vLLM PromptTokenStats. vLLM v1/metrics/stats.py.
struct PromptTokenStats {
  std::int64_t computed = 0;
  std::int64_t local_cache_hit = 0;
  std::int64_t external_kv_transfer = 0;
  std::int64_t cached_tokens = 0;  // local_cache_hit + external_kv_transfer
  std::int64_t total = 0;
  // Of external_kv_transfer, by where they were.
  std::int64_t host_cached = 0;
  std::int64_t p2p_cached = 0;
  std::int64_t disk_cached = 0;

  std::int64_t external_unspecified() const noexcept {
    return saturating_sub(
        external_kv_transfer,
        saturating_add(saturating_add(host_cached, p2p_cached), disk_cached));
  }

  void update(const PrefillStats& prefill) noexcept {
    saturating_add_to(computed, prefill.num_computed_tokens());
    saturating_add_to(local_cache_hit, prefill.num_local_cached_tokens);
    saturating_add_to(external_kv_transfer, prefill.num_external_cached_tokens);
    saturating_add_to(cached_tokens, prefill.num_cached_tokens());
    saturating_add_to(total, prefill.num_prompt_tokens);
    saturating_add_to(host_cached, prefill.num_host_cached_tokens);
    saturating_add_to(p2p_cached, prefill.num_p2p_cached_tokens);
    saturating_add_to(disk_cached, prefill.num_disk_cached_tokens);
  }
};

}  // namespace vllm_metrics::inline v0
