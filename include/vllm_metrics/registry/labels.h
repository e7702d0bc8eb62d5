#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
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

// Labels that no longer change; copies share their memory. Reads like Labels.
// Thread-safety: as a value whose copies share nothing.
class LabelSet {
 public:
  LabelSet() noexcept = default;
  LabelSet(Labels labels)
      : labels_(labels.empty()
                    ? nullptr
                    : std::make_shared<const Labels>(std::move(labels))) {}
  LabelSet(std::initializer_list<Label> labels) : LabelSet(Labels(labels)) {}

  operator Labels() const { return Labels(begin(), end()); }
  const Label* begin() const noexcept {
    return labels_ != nullptr ? labels_->data() : nullptr;
  }
  const Label* end() const noexcept { return begin() + size(); }
  std::size_t size() const noexcept {
    return labels_ != nullptr ? labels_->size() : 0;
  }
  bool empty() const noexcept { return labels_ == nullptr; }
  const Label& operator[](std::size_t i) const noexcept { return begin()[i]; }
  const Label& front() const noexcept { return *begin(); }

  friend bool operator==(const LabelSet& a, const LabelSet& b) noexcept {
    return a.labels_ == b.labels_ || std::ranges::equal(a, b);
  }

 private:
  std::shared_ptr<const Labels> labels_;  // null for none
};

// OK, or InvalidArgument naming `family`, the label and what is allowed: a bad
// name, a name twice, or one that the exposition needs for itself (`reserved`,
// e.g. "le" of a histogram; empty for none).
VLLM_METRICS_EXPORT absl::Status check_labels(std::string_view family,
                                              const LabelSet& labels,
                                              std::string_view reserved);

// `labels` sorted by name, every value valid UTF-8.
VLLM_METRICS_EXPORT Labels normalized(Labels labels);

// The same; `labels` itself, its memory still shared, when that changes
// nothing.
VLLM_METRICS_EXPORT LabelSet normalized(LabelSet labels);

// `text` with each invalid byte sequence replaced by U+FFFD, as the Unicode
// standard recommends (one mark for a maximal part of a sequence).
VLLM_METRICS_EXPORT std::string valid_utf8(std::string_view text);

}  // namespace vllm_metrics::inline v0
