#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "vllm_metrics/registry/snapshot.h"

namespace vllm_metrics::inline v0::otlp {

// What was said last of each series: its words, and since when they count.
//
// Cumulative points start where the series does, or, if processes share it, the
// first of them did; and after it was seen to fall.
// Delta points start where the last one that was taken ended, so points that
// were not taken are part of the next by themselves.
class StreamState {
 public:
  // For deltas: an exporter begins at `time`. What it knows the begin of counts
  // from there; what processes share, from `snapshot` on.
  void begin(const Snapshot& snapshot, double time);

  // Makes room for the series of `snapshot`, of `time` (seconds since 1970).
  // Series that are gone are forgotten; a series that came again under its
  // labels is a new one.
  void align(const Snapshot& snapshot, double time);

  // `snapshot` is said: what comes next starts at its `time`.
  void advance(const Snapshot& snapshot, double time);

  // The same words, but each series starts where it did, save one that fell:
  // that one starts at the time of the words before.
  void observe(const Snapshot& snapshot, double time);

  // Of the series with this number, in the order of the schema.
  double start(std::size_t series) const { return starts_[series]; }

  // The words before; those of a series that fell since are to be taken as
  // zero (fell()).
  const std::vector<std::uint64_t>& words() const { return words_; }

 private:
  double begin_of(const Schema& schema, const Series& series) const;

  std::shared_ptr<const Schema> schema_;
  std::vector<std::uint64_t> words_;
  std::vector<double> starts_;
  double time_ = 0.0;  // of words_
};

// Whether a counter or histogram is below what it was: it began again.
bool fell(const Snapshot& snapshot, const SchemaFamily& family,
          const Series& series, std::span<const std::uint64_t> before);

// Calls visit(family, series, number) for all series, in order.
template <class Visit>
void for_each_series(const Schema& schema, Visit visit) {
  std::size_t number = 0;
  for (const SchemaFamily& family : schema.families)
    for (const Series& series : family.series) visit(family, series, number++);
}

}  // namespace vllm_metrics::inline v0::otlp
