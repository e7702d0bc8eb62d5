#include "vllm_metrics/stats/request_spec_decoding.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "vllm_metrics/stats/spec_decoding_stats.h"

namespace vllm_metrics::inline v0 {
namespace {

using Step = SpecDecodingStats;  // the limits are those of a step's counts

void append_key(std::string& out, std::string_view key) {
  out += out.back() == '{' ? "\"" : ",\"";
  out += key;
  out += "\":";
}

void append_number(std::string& out, std::int64_t value) {
  out += std::to_string(value);
}

// Shortest text that reads back as the same number, as Python writes it.
// `value` is finite and far from where the exponent starts.
void append_number(std::string& out, double value) {
  char digits[32];
  const auto result =
      std::to_chars(std::begin(digits), std::end(digits), value);
  const std::string_view text(digits,
                              static_cast<std::size_t>(result.ptr - digits));
  out += text;
  if (text.find_first_of(".e") == std::string_view::npos) out += ".0";
}

template <class Int>
void append_list(std::string& out, std::string_view key,
                 std::span<const Int> values) {
  append_key(out, key);
  out += '[';
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ',';
    out += std::to_string(values[i]);
  }
  out += ']';
}

}  // namespace

std::optional<SpecDecodingDetail> parse_spec_decoding_detail(
    std::string_view text) noexcept {
  if (text == "none") return SpecDecodingDetail::kNone;
  if (text == "summary") return SpecDecodingDetail::kSummary;
  if (text == "detailed") return SpecDecodingDetail::kDetailed;
  return std::nullopt;
}

RequestSpecDecoding::RequestSpecDecoding(SpecDecodingDetail detail,
                                         std::int64_t num_spec_tokens)
    : detail_(detail),
      num_spec_tokens_(
          std::clamp<std::int64_t>(num_spec_tokens, 0, Step::kMaxSpecTokens)) {
  if (detail != SpecDecodingDetail::kNone) {
    histogram_.resize(static_cast<std::size_t>(num_spec_tokens_) + 1);
  }
}

void RequestSpecDecoding::observe_draft(std::int64_t num_draft,
                                        std::int64_t num_accepted) {
  if (detail_ == SpecDecodingDetail::kNone) return;
  const auto draft =
      std::clamp<std::int64_t>(num_draft, 0, Step::kMaxDraftTokens);
  const auto accepted =
      std::clamp<std::int64_t>(num_accepted, 0, num_spec_tokens_);
  if (draft != num_draft || accepted != num_accepted) ++num_invalid_drafts_;
  ++num_steps_;
  num_draft_tokens_ += draft;
  num_accepted_tokens_ += accepted;
  ++histogram_[static_cast<std::size_t>(accepted)];
  if (detail_ == SpecDecodingDetail::kDetailed &&
      per_step_accepted_.size() < kMaxListedSteps) {
    per_step_accepted_.push_back(static_cast<std::int32_t>(accepted));
    per_step_drafted_.push_back(static_cast<std::int32_t>(draft));
  }
}

double RequestSpecDecoding::mean_acceptance_length() const noexcept {
  if (num_steps_ == 0) return 1.0;
  return 1.0 + static_cast<double>(num_accepted_tokens_) /
                   static_cast<double>(num_steps_);
}

double RequestSpecDecoding::draft_acceptance_rate() const noexcept {
  if (num_draft_tokens_ == 0) return 0.0;
  return static_cast<double>(num_accepted_tokens_) /
         static_cast<double>(num_draft_tokens_);
}

std::vector<std::int64_t> RequestSpecDecoding::accepted_per_position() const {
  if (histogram_.empty()) return {};
  // A step that accepted j tokens accepted those at positions 0 to j - 1.
  std::vector<std::int64_t> counts(histogram_.begin() + 1, histogram_.end());
  for (std::size_t i = counts.size(); i-- > 1;) counts[i - 1] += counts[i];
  return counts;
}

void RequestSpecDecoding::append_json(std::string& out) const {
  if (detail_ == SpecDecodingDetail::kNone) {
    out += "null";
    return;
  }
  out += '{';
  append_key(out, "mean_acceptance_length");
  append_number(out, mean_acceptance_length());
  append_key(out, "draft_acceptance_rate");
  append_number(out, draft_acceptance_rate());
  append_list(out, "acceptance_histogram", acceptance_histogram());
  append_key(out, "num_spec_steps");
  append_number(out, num_steps_);
  append_key(out, "num_accepted_draft_tokens");
  append_number(out, num_accepted_tokens_);
  append_key(out, "num_draft_tokens");
  append_number(out, num_draft_tokens_);
  append_key(out, "num_spec_tokens");
  append_number(out, num_spec_tokens_);
  if (!per_step_accepted_.empty()) {
    append_list(out, "per_step_accepted", per_step_accepted());
    append_list(out, "per_step_drafted", per_step_drafted());
  }
  out += '}';
}

}  // namespace vllm_metrics::inline v0
