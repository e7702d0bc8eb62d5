#pragma once

#include <cstddef>
#include <span>

namespace vllm_metrics::inline v0 {

// The sum as numpy adds: a plain loop below 8 values, eight partial sums up to
// 128, halves above. Rounds less than a plain loop, and as vLLM's records do.
double pairwise_sum(std::span<const double> values);

// The quantile `q` (0..1) by linear interpolation between order statistics,
// numpy's default. Reorders `values`; at least one.
double quantile(std::span<double> values, double q);

}  // namespace vllm_metrics::inline v0
