#pragma once

#include <cstdint>

namespace vllm_metrics::inline v0 {

// What a bank's section could not take as it came; the caller counts it on the
// page.
struct SampleFaults {
  std::uint64_t negative_increments = 0;    // dropped
  std::uint64_t not_finite = 0;             // dropped
  std::uint64_t negative_observations = 0;  // taken as 0
};

}  // namespace vllm_metrics::inline v0
