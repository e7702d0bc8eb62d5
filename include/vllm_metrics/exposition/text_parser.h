#pragma once

#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "vllm_metrics/export.h"
#include "vllm_metrics/exposition/page.h"

namespace vllm_metrics::inline v0 {

struct ParseOptions {
  // Strict: the first fault is an error. Tolerant: a fault is noted in
  // Page::faults, what cannot be read is left out, and reading goes on.
  enum class Mode { kStrict, kTolerant };

  Mode mode = Mode::kStrict;
  // Without one: OpenMetrics exactly when the last line is `# EOF`.
  std::optional<PageFormat> format = {};
};

// Reads a page of metrics, ours or anybody's: the text exposition format 0.0.4
// or OpenMetrics 1.0. `text` has to outlive the Page.
//
// Faults are what the format's definition forbids, and beside the grammar: a
// series twice, a family in two places, a TYPE below its samples, bytes that
// are not UTF-8, a histogram that is not cumulative, has no +Inf bucket or
// another count than that bucket's. A tolerant reader still has
//   - a late TYPE: the samples above are sorted into their family;
//   - an unknown TYPE as untyped, an unknown escape as it stands;
//   - of a sample given twice, the first;
//   - buckets as they are: check Page::faults before you trust a quantile.
//
// Numbers are those of Go's and Python's parsers: `1.9392065536e+010`, `+Inf`,
// `-inf`, `NaN`. No locale. Timestamps are milliseconds in the text format and
// seconds in OpenMetrics; here always seconds.
// Time grows with the page; beside the Page little more than a line is stored.
// Thread-safety: a function of its arguments.
// Errors: InvalidArgument `line 3, column 14: what is there, and what is
// allowed`; none in tolerant mode.
// Definition: Prometheus "Text-based format" 0.0.4, OpenMetrics 1.0.
VLLM_METRICS_EXPORT absl::StatusOr<Page> parse_page(std::string_view text,
                                                    ParseOptions options = {});

}  // namespace vllm_metrics::inline v0
