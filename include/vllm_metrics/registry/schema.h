#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "vllm_metrics/primitives/bucket_bounds.h"
#include "vllm_metrics/primitives/exemplar_format.h"
#include "vllm_metrics/primitives/native_format.h"
#include "vllm_metrics/registry/family.h"
#include "vllm_metrics/registry/labels.h"

namespace vllm_metrics::inline v0 {

// One label set of a family, and where its words lie:
//   counter    1 word: an unsigned integer or a double, by Family::number
//   gauge      1 word: a double
//   histogram  a word for each bucket (not cumulative, the last is +Inf),
//              then the sum, a double; then, if it has native buckets, their
//              words (primitives/native_format.h); then, if it has exemplars,
//              theirs (primitives/exemplar_format.h)
struct Series {
  LabelSet labels = {};  // sorted by name once registered
  std::uint32_t offset = 0;
  std::shared_ptr<const BucketBounds> bounds =
      nullptr;  // histograms only; may differ between series
  std::uint32_t native_buckets = 0;  // histograms only; 0: none
  std::uint32_t exemplars = 0;       // histograms only: one a bucket; 0: none
  double created = 0.0;  // seconds since 1970, of the series' registration
};

struct SchemaFamily {
  Family family;
  std::vector<Series> series = {};
};

// What the words of a snapshot mean: families in the order of the page, each
// once. Immutable once shared; a registration makes a new one.
struct Schema {
  std::vector<SchemaFamily> families = {};
  std::size_t word_count = 0;
  // Seconds since 1970: when the first of those who share series began, whose
  // own `created` are unknown. 0: unknown too, or nothing is shared.
  double since = 0.0;
};

// How many words a series of this kind takes.
inline std::size_t word_count(MetricKind kind, const BucketBounds* bounds,
                              std::uint32_t native_buckets = 0,
                              std::uint32_t exemplars = 0) {
  if (kind != MetricKind::kHistogram) return 1;
  return bounds->bucket_count() + 1 + native_word_count(native_buckets) +
         kExemplarWords * exemplars;
}

}  // namespace vllm_metrics::inline v0
