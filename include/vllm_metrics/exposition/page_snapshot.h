#pragma once

#include "absl/status/statusor.h"
#include "vllm_metrics/export.h"
#include "vllm_metrics/exposition/page.h"
#include "vllm_metrics/registry/snapshot.h"

namespace vllm_metrics::inline v0 {

// The way back: a page as the snapshot that it was written from, e.g. to write
// it in another format. A page of this library comes out byte for byte:
// TextFormat().render(*snapshot_of(*parse_page(page))) == page, and the same of
// OpenMetrics, with `created_series` where the page has them.
//
// A page does not tell events from estimates: every counter is a double. From
// 2^53 on it has lost the last digits, and so has the snapshot. Exemplars and
// timestamps are left behind.
//
// Errors: InvalidArgument naming the family and what is allowed: kinds other
// than counter, gauge and histogram, and histograms without finite bounds or
// with counts that are not whole or not cumulative. Take such families out of
// Page::families first.
VLLM_METRICS_EXPORT absl::StatusOr<Snapshot> snapshot_of(const Page& page);

}  // namespace vllm_metrics::inline v0
