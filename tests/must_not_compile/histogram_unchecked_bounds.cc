// Bounds are checked by BucketBounds before a histogram exists.
// Error: no matching (constructor|function)
#include <utility>
#include <vector>

#include "vllm_metrics/primitives/histogram.h"

#ifdef MUST_NOT_COMPILE
vllm_metrics::Histogram make(std::vector<double> bounds) {
#else
vllm_metrics::Histogram make(vllm_metrics::BucketBounds bounds) {
#endif
  return vllm_metrics::Histogram(std::move(bounds));
}
