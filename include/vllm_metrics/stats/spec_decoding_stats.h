#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace vllm_metrics::inline v0 {

// Speculative decoding in one step, over all requests. Counts are deltas of
// the step. Refill and reuse one struct: no allocation in steady state.
//
// Thread-safety: none; a plain struct of one step.
// Errors: none; see num_invalid_drafts.
// Definition: vLLM SpecDecodingStats. vLLM v1/spec_decode/metrics.py.
struct SpecDecodingStats {
  static constexpr std::int64_t kMaxSpecTokens = 4096;
  static constexpr std::int64_t kMaxDraftTokens = 2147483647;  // 2^31 - 1

  // Most tokens of one draft, as configured; 0 to kMaxSpecTokens, beyond
  // counts as the nearest of these.
  std::int64_t num_spec_tokens = 0;

  std::int64_t num_drafts = 0;           // drafts that were verified
  std::int64_t num_draft_tokens = 0;     // tokens proposed
  std::int64_t num_accepted_tokens = 0;  // of them, accepted
  // Drafts of which the token at this position was accepted.
  std::vector<std::int64_t> num_accepted_tokens_per_pos = {};

  // Drafts with counts that cannot be: below 0, more accepted than
  // num_spec_tokens, more proposed than kMaxDraftTokens. They are counted above
  // with the nearest counts that can.
  std::int64_t num_invalid_drafts = 0;

  // One request's draft: tokens proposed, and accepted by the model.
  void observe_draft(std::int64_t num_draft, std::int64_t num_accepted) {
    const std::int64_t most =
        std::clamp<std::int64_t>(num_spec_tokens, 0, kMaxSpecTokens);
    const std::int64_t draft =
        std::clamp<std::int64_t>(num_draft, 0, kMaxDraftTokens);
    const std::int64_t accepted =
        std::clamp<std::int64_t>(num_accepted, 0, most);
    if (draft != num_draft || accepted != num_accepted) ++num_invalid_drafts;
    ++num_drafts;
    num_draft_tokens += draft;
    num_accepted_tokens += accepted;
    auto& per_pos = num_accepted_tokens_per_pos;
    if (per_pos.size() < static_cast<std::size_t>(most)) {
      per_pos.resize(static_cast<std::size_t>(most));
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(accepted); ++i) {
      ++per_pos[i];
    }
  }

  // Ready for the next step; keeps num_spec_tokens and the storage.
  void reset() noexcept {
    num_drafts = num_draft_tokens = num_accepted_tokens = 0;
    num_invalid_drafts = 0;
    std::fill(num_accepted_tokens_per_pos.begin(),
              num_accepted_tokens_per_pos.end(), 0);
  }
};

}  // namespace vllm_metrics::inline v0
