#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "vllm_metrics/export.h"

namespace vllm_metrics::inline v0 {

// One dimension of a family, e.g. engine="0".
struct Label {
  // [a-zA-Z_][a-zA-Z0-9_]*, not starting with two underscores
  std::string name;
  std::string value;  // any text; what is not valid UTF-8 becomes U+FFFD

  friend bool operator==(const Label&, const Label&) = default;
};

// The label set of one series. The registry keeps it sorted by name, which is
// also the order on the page.
using Labels = std::vector<Label>;

// OK, or InvalidArgument naming `family`, the label and what is allowed: a bad
// name, a name twice, or one that the exposition needs for itself (`reserved`,
// e.g. "le" of a histogram; empty for none).
VLLM_METRICS_EXPORT absl::Status check_labels(std::string_view family,
                                              const Labels& labels,
                                              std::string_view reserved);

// `labels` sorted by name, every value valid UTF-8.
VLLM_METRICS_EXPORT Labels normalized(Labels labels);

// `text` with each invalid byte sequence replaced by U+FFFD, as the Unicode
// standard recommends (one mark for a maximal part of a sequence).
VLLM_METRICS_EXPORT std::string valid_utf8(std::string_view text);

}  // namespace vllm_metrics::inline v0
