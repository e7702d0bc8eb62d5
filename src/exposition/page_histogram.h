#pragma once

#include "src/exposition/page_faults.h"
#include "vllm_metrics/exposition/page.h"

namespace vllm_metrics::inline v0 {

// Once all lines of a histogram are read: sorts its buckets, takes its count
// from them when the page has none, and notes what contradicts itself.
void finish_histogram(PageFormat format, const PageFamily& family,
                      bool has_count, PageSeries& series, PageFaults& faults);

}  // namespace vllm_metrics::inline v0
