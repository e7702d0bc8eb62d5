#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "vllm_metrics/stats/spec_decoding_stats.h"

namespace vllm_metrics::inline v0 {

// Speculative decoding (or diffusion, whose steps come in the same struct)
// since the last text record: sums only, however long that is.
class SpecDecodingLog {
 public:
  void observe(const SpecDecodingStats& stats);
  bool empty() const noexcept { return steps_ == 0; }
  void reset();

  // `elapsed`: seconds since the last record of this kind.
  std::string speculative_text(double elapsed) const;
  std::string diffusion_text(double elapsed) const;

 private:
  std::int64_t steps_ = 0;
  std::int64_t drafts_ = 0;
  std::int64_t draft_tokens_ = 0;
  std::int64_t accepted_tokens_ = 0;
  std::vector<std::int64_t> accepted_per_pos_;
};

}  // namespace vllm_metrics::inline v0
