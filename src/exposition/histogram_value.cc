#include "vllm_metrics/exposition/histogram_value.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace vllm_metrics::inline v0 {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

HistogramValue increase(const HistogramValue& before,
                        const HistogramValue& after) {
  const auto has_not_fallen = [](std::uint64_t b, std::uint64_t a) {
    return b <= a;
  };
  if (before.bounds != after.bounds ||
      !std::ranges::equal(before.buckets, after.buckets, has_not_fallen)) {
    return after;
  }
  HistogramValue between = after;
  for (std::size_t i = 0; i < between.buckets.size(); ++i)
    between.buckets[i] -= before.buckets[i];
  between.sum -= before.sum;
  // Two looks need not be whole scrapes of one moment: more may have come to a
  // low bucket than to one above it.
  std::uint64_t least = 0;
  for (std::uint64_t& bucket : between.buckets)
    bucket = least = std::max(least, bucket);
  return between;
}

double rate(double before, double after, double seconds) {
  return seconds > 0.0 ? increase(before, after) / seconds : kNan;
}

double mean(const HistogramValue& histogram) {
  const std::uint64_t count = histogram.count();
  return count == 0 ? kNan : histogram.sum / static_cast<double>(count);
}

double quantile(double q, const HistogramValue& histogram) {
  const auto& [bounds, buckets, sum] = histogram;
  if (histogram.count() == 0 || bounds.empty() || std::isnan(q)) return kNan;
  if (q < 0.0) return -kInfinity;
  if (q > 1.0) return kInfinity;
  double rank = q * static_cast<double>(histogram.count());
  const auto found = std::ranges::find_if(buckets, [&](std::uint64_t bucket) {
    return static_cast<double>(bucket) >= rank;
  });
  const auto index = static_cast<std::size_t>(found - buckets.begin());
  if (index >= bounds.size()) return bounds.back();
  const double end = bounds[index];
  if (index == 0 && end <= 0.0) return end;
  const double start = index == 0 ? 0.0 : bounds[index - 1];
  const std::uint64_t below = index == 0 ? 0 : buckets[index - 1];
  rank -= static_cast<double>(below);
  return start +
         (end - start) * (rank / static_cast<double>(buckets[index] - below));
}

}  // namespace vllm_metrics::inline v0
