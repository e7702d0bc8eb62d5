#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "vllm_metrics/registry/schema.h"

namespace vllm_metrics::inline v0 {

// Everything a registry knew at one moment, as plain data: the only thing that
// exposition reads. Within one engine all words are of the same step.
//
// Thread-safety: a value. Reuse one for many scrapes and it stops allocating.
struct Snapshot {
  std::shared_ptr<const Schema> schema;  // null before the first fill
  std::vector<std::uint64_t> words;      // Schema::word_count of them

  std::uint64_t integer(const Series& series) const {
    return words[series.offset];
  }
  double real(const Series& series) const {
    return std::bit_cast<double>(words[series.offset]);
  }

  // Of a histogram: not cumulative, the last is +Inf; their sum is the count.
  std::span<const std::uint64_t> buckets(const Series& series) const {
    return std::span(words).subspan(series.offset,
                                    series.bounds->bucket_count());
  }
  double sum(const Series& series) const {
    return std::bit_cast<double>(
        words[series.offset + series.bounds->bucket_count()]);
  }
  // The same observations once more, in native buckets. Without such: no
  // counts. native_histogram.h reads quantiles from it.
  NativeView native(const Series& series) const {
    return native_view(std::span(words).subspan(
        series.offset + word_count(MetricKind::kHistogram, series.bounds.get()),
        native_word_count(series.native_buckets)));
  }
  // The newest observation of a bucket that came from a trace. Not valid():
  // there was none, or the series keeps none.
  Exemplar exemplar(const Series& series, std::size_t bucket) const {
    if (bucket >= series.exemplars) return {};
    const std::size_t first =
        series.offset + word_count(MetricKind::kHistogram, series.bounds.get(),
                                   series.native_buckets);
    return exemplar_of(std::span(words)
                           .subspan(first + kExemplarWords * bucket)
                           .first<kExemplarWords>());
  }
};

}  // namespace vllm_metrics::inline v0
