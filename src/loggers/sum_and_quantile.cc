#include "src/loggers/sum_and_quantile.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace vllm_metrics::inline v0 {

double pairwise_sum(std::span<const double> values) {
  constexpr std::size_t kLanes = 8;
  constexpr std::size_t kBlock = 128;
  if (values.size() > kBlock) {
    std::size_t half = values.size() / 2;
    half -= half % kLanes;
    return pairwise_sum(values.first(half)) +
           pairwise_sum(values.subspan(half));
  }
  double sum = 0.0;
  std::size_t i = 0;
  if (values.size() >= kLanes) {
    std::array<double, kLanes> r{};
    std::copy_n(values.begin(), kLanes, r.begin());
    for (i = kLanes; i + kLanes <= values.size(); i += kLanes) {
      for (std::size_t lane = 0; lane < kLanes; ++lane)
        r[lane] += values[i + lane];
    }
    sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
  }
  for (; i < values.size(); ++i) sum += values[i];
  return sum;
}

double quantile(std::span<double> values, double q) {
  const double place = static_cast<double>(values.size() - 1) * q;
  const auto below = static_cast<std::size_t>(std::floor(place));
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(below);
  std::nth_element(values.begin(), at, values.end());
  if (below + 1 == values.size()) return *at;
  const double low = *at;
  const double high = *std::min_element(at + 1, values.end());
  const double t = place - std::floor(place);
  // numpy's two forms, exact at both ends.
  return t < 0.5 ? low + (high - low) * t : high - (high - low) * (1.0 - t);
}

}  // namespace vllm_metrics::inline v0
