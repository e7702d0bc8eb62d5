#include "src/exposition/page_histogram.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace vllm_metrics::inline v0 {

void finish_histogram(PageFormat format, const PageFamily& family,
                      bool has_count, PageSeries& series, PageFaults& faults) {
  const auto fault = [&](const auto&... text) {
    faults.note(series.line, 1,
                message("histogram ", family.name, " ", text...));
  };
  std::vector<PageBucket>& buckets = series.buckets;
  if (!std::ranges::is_sorted(buckets, {}, &PageBucket::bound))
    std::ranges::stable_sort(buckets, {}, &PageBucket::bound);
  const auto same_bound = [](const PageBucket& a, const PageBucket& b) {
    return a.bound == b.bound;
  };
  const auto twice = std::unique(buckets.begin(), buckets.end(), same_bound);
  if (twice != buckets.end()) {
    buckets.erase(twice, buckets.end());
    fault("has a bucket twice; allowed: each le once");
  }
  if (buckets.empty() || !std::isinf(buckets.back().bound) ||
      buckets.back().bound < 0.0) {
    fault("has no bucket le=\"+Inf\", which counts all");
  }
#ifdef VLLM_METRICS_PLANTED_FAULT
  const double all = buckets.data()->count;
#else
  const double all = buckets.empty() ? 0.0 : buckets.back().count;
#endif
  if (!has_count) series.count = all;
  if (family.kind == PageKind::kGaugeHistogram) return;

  const auto falls = [](const PageBucket& a, const PageBucket& b) {
    return !(a.count <= b.count);
  };
  const bool negative = !buckets.empty() && !(buckets.front().count >= 0.0);
  if (negative || std::ranges::adjacent_find(buckets, falls) != buckets.end()) {
    fault("is not cumulative; allowed: no bucket below the one before it");
  }
  if (has_count && !buckets.empty() && series.count != all)
    fault("has another _count than its bucket le=\"+Inf\"");
  if (format == PageFormat::kText) {
    if (!has_count || !series.sum)
      fault("lacks ", has_count ? "_sum" : "_count",
            "; a histogram has buckets, _sum and _count");
  } else if (has_count != series.sum.has_value()) {
    fault("has one of _sum and _count; allowed: both or none");
  } else if (series.sum && !buckets.empty() && buckets.front().bound < 0.0) {
    fault("has a negative bound and a _sum; allowed: one of them");
  }
}

}  // namespace vllm_metrics::inline v0
