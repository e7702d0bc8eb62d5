#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "vllm_metrics/primitives/bucket_bounds.h"

namespace vllm_metrics::inline v0 {

// What a histogram does with a value below zero: a latency cannot be negative,
// a temperature can.
enum class Negatives { kTakenAsZero, kAllowed };

// A batch of observations after counting.
struct Tally {
  double sum =
      0.0;  // the start value plus every accepted value, added in order
  std::uint64_t not_finite = 0;  // NaN and infinities: dropped
  std::uint64_t negative = 0;    // with kTakenAsZero: counted as 0
};

namespace internal {

constexpr std::uint64_t kLargestFinite =
    std::bit_cast<std::uint64_t>(std::numeric_limits<double>::max());

// True for +0 and every positive finite number: one unsigned compare refuses
// negatives (sign bit), infinities and NaN at once.
inline bool is_plain(double v) noexcept {
  return std::bit_cast<std::uint64_t>(v) <= kLargestFinite;
}

template <Negatives kNegatives, class AddToBucket>
Tally tally_checked(const BucketBounds& bounds, std::span<const double> values,
                    double sum, AddToBucket& add) {
  Tally tally{sum};
  for (double v : values) {
    if (!std::isfinite(v)) {
      ++tally.not_finite;
      continue;
    }
    if (kNegatives == Negatives::kTakenAsZero && v < 0.0) {
      ++tally.negative;
      v = 0.0;
    }
    add(bounds.bucket_of(v), std::uint64_t{1});
    tally.sum += v;
  }
  return tally;
}

constexpr std::size_t kLocalBuckets = 32;

}  // namespace internal

// Counts `values` into buckets: `add(bucket_index, n)` is called with what each
// bucket gains, and the sum goes on from `sum`, one value after the other, so
// that a batch rounds as single observations do.
//
// Counts gather in local arrays first (four of them, since two equal buckets in
// a row would wait for each other's store); memory sees each bucket once. In
// steady decode all latencies of a step are often one number, so a batch that
// starts with two equal values searches once per run of equal ones.
// The batch is first taken to be plain numbers; one that is not is counted
// again by the careful loop before anything was added.
//
// Cost: about 1.6 ns a value (bench/histogram_bench.cc). Allocates nothing.
template <Negatives kNegatives, class AddToBucket>
Tally tally(const BucketBounds& bounds, std::span<const double> values,
            double sum, AddToBucket&& add) {
  const std::size_t n = values.size();
  if (n < 2 || !bounds.has_table() ||
      bounds.bucket_count() > internal::kLocalBuckets) {
    return internal::tally_checked<kNegatives>(bounds, values, sum, add);
  }
  std::array<std::array<std::uint32_t, internal::kLocalBuckets>, 4> counts{};
  Tally result{sum};
  if (values[0] == values[1]) {
    for (std::size_t i = 0; i < n;) {
      const double v = values[i];
      if (!internal::is_plain(v))
        return internal::tally_checked<kNegatives>(bounds, values, sum, add);
      const std::size_t start = i;
      do result.sum += v;
      while (++i < n && values[i] == v);
      counts[start & 3][bounds.look_up(v)] +=
          static_cast<std::uint32_t>(i - start);
    }
  } else {
    std::uint64_t largest = 0;
    const auto count =
        [&](std::array<std::uint32_t, internal::kLocalBuckets>& local,
            double v) {
          const auto bits = std::bit_cast<std::uint64_t>(v);
          largest = largest < bits ? bits : largest;
          ++local[bounds.look_up(v)];
          result.sum += v;
        };
    std::size_t i = 0;
    for (; i + 4 <= n; i += 4) {
      count(counts[0], values[i]);
      count(counts[1], values[i + 1]);
      count(counts[2], values[i + 2]);
      count(counts[3], values[i + 3]);
    }
    for (; i < n; ++i) count(counts[0], values[i]);
    if (largest > internal::kLargestFinite) {
      return internal::tally_checked<kNegatives>(bounds, values, sum, add);
    }
  }
  for (std::size_t b = 0; b < bounds.bucket_count(); ++b) {
    const std::uint64_t gained = std::uint64_t{counts[0][b]} + counts[1][b] +
                                 counts[2][b] + counts[3][b];
    if (gained != 0) add(b, gained);
  }
  return result;
}

}  // namespace vllm_metrics::inline v0
