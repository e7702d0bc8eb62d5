#include "src/loggers/spec_decoding_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>

#include "src/loggers/python_text.h"
#include "vllm_metrics/stats/saturating_add.h"

namespace vllm_metrics::inline v0 {
namespace {

// As numpy divides: 0 / 0 is nan.
double ratio(std::int64_t part, std::int64_t whole) {
  return unsigned_nan(static_cast<double>(part) / static_cast<double>(whole));
}

// `nan` where the divisor is 0, whatever is divided.
double ratio_or_nan(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? std::numeric_limits<double>::quiet_NaN()
                    : ratio(part, whole);
}

double per_second(std::int64_t n, double elapsed) {
  return elapsed > 0.0 ? static_cast<double>(n) / elapsed : 0.0;
}

}  // namespace

void SpecDecodingLog::observe(const SpecDecodingStats& stats) {
  ++steps_;
  saturating_add_to(drafts_, stats.num_drafts);
  saturating_add_to(draft_tokens_, stats.num_draft_tokens);
  saturating_add_to(accepted_tokens_, stats.num_accepted_tokens);
  constexpr auto kMost = std::size_t{SpecDecodingStats::kMaxSpecTokens};
  const auto& per_pos = stats.num_accepted_tokens_per_pos;
  const auto configured = static_cast<std::size_t>(
      std::max<std::int64_t>(stats.num_spec_tokens, 0));
  const std::size_t positions =
      std::min(std::max(per_pos.size(), configured), kMost);
  if (accepted_per_pos_.size() < positions) accepted_per_pos_.resize(positions);
  for (std::size_t i = 0; i < std::min(per_pos.size(), kMost); ++i)
    saturating_add_to(accepted_per_pos_[i], per_pos[i]);
}

void SpecDecodingLog::reset() {
  steps_ = drafts_ = draft_tokens_ = accepted_tokens_ = 0;
  std::ranges::fill(accepted_per_pos_, 0);
}

std::string SpecDecodingLog::speculative_text(double elapsed) const {
  std::string per_pos;
  for (const auto accepted : accepted_per_pos_) {
    per_pos += fmt::format("{}{:.3f}", per_pos.empty() ? "" : ", ",
                           ratio(accepted, drafts_));
  }
  return fmt::format(
      "SpecDecoding metrics: Mean acceptance length: {:.2f}, Accepted "
      "throughput: {:.2f} tokens/s, Drafted throughput: "
      "{:.2f} tokens/s, Accepted: {} tokens, Drafted: {} tokens, Per-position "
      "acceptance rate: {}, Avg Draft "
      "acceptance rate: {:.1f}%",
      1.0 + ratio(accepted_tokens_, drafts_),
      per_second(accepted_tokens_, elapsed), per_second(draft_tokens_, elapsed),
      accepted_tokens_, draft_tokens_, per_pos,
      100.0 * ratio_or_nan(accepted_tokens_, draft_tokens_));
}

std::string SpecDecodingLog::diffusion_text(double elapsed) const {
  return fmt::format(
      "DiffusionDecoding metrics: Committed token throughput: {:.2f} tokens/s, "
      "Mean denoising steps per canvas: {:.2f}, "
      "Mean tokens committed per denoising step: {:.2f}, Committed: {} tokens, "
      "Denoising steps: {}, Canvas positions "
      "evaluated: {}",
      per_second(accepted_tokens_, elapsed),
      ratio_or_nan(draft_tokens_, accepted_tokens_),
      ratio_or_nan(accepted_tokens_, drafts_), accepted_tokens_, drafts_,
      draft_tokens_);
}

}  // namespace vllm_metrics::inline v0
