#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vllm_metrics/export.h"

namespace vllm_metrics::inline v0 {

// How much a response tells about the drafts of its request.
enum class SpecDecodingDetail {
  kNone,      // nothing, and nothing is collected
  kSummary,   // counts, rates and the histogram
  kDetailed,  // and two lists with an entry for each step
};

// "none", "summary" or "detailed", as vLLM's option
// `--per-request-spec-decode-metrics` has them; empty for any other text.
VLLM_METRICS_EXPORT std::optional<SpecDecodingDetail>
parse_spec_decoding_detail(std::string_view text) noexcept;

// Speculative decoding of one request, for the server to return with its
// response. A step is one draft and its verification; the token that the model
// adds by itself counts as generated, not as accepted.
//
//   RequestSpecDecoding drafts(SpecDecodingDetail::kSummary, 3);
//   drafts.observe_draft(3, 1);
//   response += "\"metrics\":{\"speculative_decoding\":";
//   drafts.append_json(response);
//
// Thread-safety: none; it belongs to its request.
// Memory: num_spec_tokens + 1 counts; kDetailed 8 bytes for each step, up to
// kMaxListedSteps.
// Errors: none. An impossible count is taken as the nearest possible one, see
// num_invalid_drafts().
// Definition: vLLM RequestSpecDecodeMetrics. vLLM v1/metrics/stats.py, 0.28.
class VLLM_METRICS_EXPORT RequestSpecDecoding {
 public:
  // Later steps are counted, but not listed.
  static constexpr std::size_t kMaxListedSteps = 65536;

  // `num_spec_tokens`: most tokens of one draft, as configured, 0 to 4096;
  // beyond, the nearest of these.
  RequestSpecDecoding(SpecDecodingDetail detail, std::int64_t num_spec_tokens);

  // One step: tokens proposed, and accepted of them (0 to num_spec_tokens).
  void observe_draft(std::int64_t num_draft, std::int64_t num_accepted);

  std::int64_t num_steps() const noexcept { return num_steps_; }
  std::int64_t num_draft_tokens() const noexcept { return num_draft_tokens_; }
  std::int64_t num_accepted_tokens() const noexcept {
    return num_accepted_tokens_;
  }
  std::int64_t num_invalid_drafts() const noexcept {
    return num_invalid_drafts_;
  }

  // Tokens generated a step, 1 to num_spec_tokens + 1; 1 before the first.
  double mean_acceptance_length() const noexcept;

  // Accepted tokens of those proposed; 0 when none were.
  double draft_acceptance_rate() const noexcept;

  // At index j: steps that accepted exactly j tokens. Empty with kNone.
  std::span<const std::int64_t> acceptance_histogram() const noexcept {
    return histogram_;
  }

  // At index j: steps that accepted the token at this position of the draft.
  std::vector<std::int64_t> accepted_per_position() const;

  // In order, with kDetailed; empty otherwise.
  std::span<const std::int32_t> per_step_accepted() const noexcept {
    return per_step_accepted_;
  }
  std::span<const std::int32_t> per_step_drafted() const noexcept {
    return per_step_drafted_;
  }

  // The JSON object that vLLM has under `metrics.speculative_decoding` of a
  // response; `null` with kNone.
  void append_json(std::string& out) const;

 private:
  SpecDecodingDetail detail_;
  std::int64_t num_spec_tokens_;
  std::int64_t num_steps_ = 0;
  std::int64_t num_draft_tokens_ = 0;
  std::int64_t num_accepted_tokens_ = 0;
  std::int64_t num_invalid_drafts_ = 0;
  std::vector<std::int64_t> histogram_;
  std::vector<std::int32_t> per_step_accepted_;
  std::vector<std::int32_t> per_step_drafted_;
};

}  // namespace vllm_metrics::inline v0
