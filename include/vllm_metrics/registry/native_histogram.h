#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "vllm_metrics/export.h"
#include "vllm_metrics/primitives/native_buckets.h"
#include "vllm_metrics/primitives/native_format.h"
#include "vllm_metrics/registry/labels.h"
#include "vllm_metrics/registry/snapshot.h"

namespace vllm_metrics::inline v0 {

// OK, or InvalidArgument naming the field, its value and what is allowed.
VLLM_METRICS_EXPORT absl::Status check_native(
    const NativeHistogramOptions& options);

// A quantile read from native buckets, and how wrong it can be: the value that
// has its rank among the observations lies above `lower` and not above `upper`.
struct NativeQuantile {
  double value = 0.0;
  double lower = 0.0;
  double upper = 0.0;
};

// The quantile `q` of all that was observed, in the unit of the family.
//
// Inside a bucket the value is interpolated on a logarithmic scale, as
// Prometheus does since 3.0; before (2.40 to 2.55) it went in a straight line,
// between the same two ends. `upper / lower` is 2^(2^-schema): at schema 3 the
// value is off by less than 9.1 %, at schema 5 by less than 2.2 %. In the zero
// bucket the line is straight, from 0 to the threshold.
//
// `q` below 0 is -Inf, above 1 +Inf; a NaN, or no observation, is NaN, in all
// three.
// Definition: histogram_quantile() of PromQL on a native histogram.
VLLM_METRICS_EXPORT NativeQuantile native_quantile(const NativeView& view,
                                                   double q);

// The same of all series of `family` with native buckets that have the labels
// `where`, perhaps among others, e.g. of all engines together. NaN when there
// is none.
// Definition: histogram_quantile(q, sum(...)) of PromQL.
VLLM_METRICS_EXPORT NativeQuantile native_quantile(const Snapshot& snapshot,
                                                   std::string_view family,
                                                   double q,
                                                   const Labels& where = {});

// Adds the observations of `from` to those of the native words `into`, e.g. of
// another process: `into` has the lower schema of the two afterwards, lower
// still if its buckets need that, and the higher zero threshold, which goes up
// to the end of a bucket that it would cut. Fewer words than a header: nothing
// happens. Sums and classic buckets are the caller's to add.
// Definition: the addition of two native histograms in PromQL.
VLLM_METRICS_EXPORT void merge_native(std::span<std::uint64_t> into,
                                      const NativeView& from);

}  // namespace vllm_metrics::inline v0
