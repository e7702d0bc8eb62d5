#pragma once

#include <cstdint>
#include <vector>

#include "vllm_metrics/export.h"

namespace vllm_metrics::inline v0 {

// What a histogram held at one moment, or between two.
struct HistogramValue {
  std::vector<double> bounds = {};  // inclusive, ascending, finite
  // Cumulative: of each bound those up to it, then all. Never falls.
  std::vector<std::uint64_t> buckets = {};
  double sum = 0.0;

  std::uint64_t count() const { return buckets.empty() ? 0 : buckets.back(); }
};

// What came between two looks at one histogram. If it was reset meanwhile (a
// restart: a bucket has fallen, or the bounds are others), all of `after`.
VLLM_METRICS_EXPORT HistogramValue increase(const HistogramValue& before,
                                            const HistogramValue& after);

// The same of a counter's value.
inline double increase(double before, double after) {
  return after < before ? after : after - before;
}

// The increase for each of `seconds` between the two looks; NaN unless they
// are more than 0.
VLLM_METRICS_EXPORT double rate(double before, double after, double seconds);

// Sum by count; NaN when it counted nothing.
VLLM_METRICS_EXPORT double mean(const HistogramValue& histogram);

// The value that a share `q` of the observations does not exceed, interpolated
// within its bucket as PromQL does: from 0 in a first bucket with a positive
// bound; a first bucket with another is its bound; in the +Inf bucket, the
// highest finite bound. NaN when it counted nothing, -Inf for q < 0, +Inf for
// q > 1.
// Definition: Prometheus histogram_quantile().
VLLM_METRICS_EXPORT double quantile(double q, const HistogramValue& histogram);

}  // namespace vllm_metrics::inline v0
