#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "vllm_metrics/stats/cuda_graph_stats.h"

namespace vllm_metrics::sim {

// Which CUDA graph runs a step: one was captured for each of these sizes, and a
// step is padded to the next one. Decodes run in a full graph, a step with
// prompt tokens piecewise, and one that is too large without any.
class CudaGraphs {
 public:
  CudaGraphs() {
    constexpr std::int64_t kFine = 256;
    constexpr std::int64_t kMost = 512;
    for (std::int64_t n = 8; n < kFine; n += 8) sizes_.push_back(n);
    for (std::int64_t n = kFine; n <= kMost; n += 16) sizes_.push_back(n);
  }

  const std::vector<std::int64_t>& sizes() const { return sizes_; }

  CudaGraphStat stat_of(std::int64_t num_tokens, bool decodes_only) const {
    const auto size =
        std::lower_bound(sizes_.begin(), sizes_.end(), num_tokens);
    if (size == sizes_.end()) return {num_tokens, num_tokens, 0, "NONE"};
    return {num_tokens, *size, *size - num_tokens,
            decodes_only ? "FULL" : "PIECEWISE"};
  }

 private:
  std::vector<std::int64_t> sizes_ = {1, 2, 4};  // tokens, rising
};

}  // namespace vllm_metrics::sim
