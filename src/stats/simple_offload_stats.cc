#include "vllm_metrics/stats/simple_offload_stats.h"

#include <algorithm>

#include "vllm_metrics/stats/saturating_add.h"

namespace vllm_metrics::inline v0 {
void SimpleOffloadStats::record_save(SaveOutcome outcome,
                                     std::int64_t blocks) noexcept {
  const auto at = static_cast<std::size_t>(outcome);
  if (at < save_outcomes.size()) saturating_add_to(save_outcomes[at], blocks);
}

void SimpleOffloadStats::aggregate(const SimpleOffloadStats& other) noexcept {
  for (std::size_t i = 0; i < save_outcomes.size(); ++i)
    saturating_add_to(save_outcomes[i], other.save_outcomes[i]);
  saturating_add_to(num_load_blocks_issued, other.num_load_blocks_issued);
  saturating_add_to(num_load_blocks_completed, other.num_load_blocks_completed);
  if (other.used_blocks.has_value()) used_blocks = other.used_blocks;
  if (other.pending_store_blocks.has_value())
    pending_store_blocks = other.pending_store_blocks;
}

bool SimpleOffloadStats::empty() const noexcept {
  return std::ranges::all_of(save_outcomes,
                             [](std::int64_t n) { return n == 0; }) &&
         num_load_blocks_issued == 0 && num_load_blocks_completed == 0 &&
         !used_blocks.has_value() && !pending_store_blocks.has_value();
}

}  // namespace vllm_metrics::inline v0
