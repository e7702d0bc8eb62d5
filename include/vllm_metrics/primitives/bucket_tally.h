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

// `sum` plus `v` (plain), `n` times over, rounded each time as in a loop.
//
// Between two powers of two doubles are evenly spaced, and every addition that
// stays there moves the sum by the same whole number of spacings, from the
// second on: a tie is rounded to an even sum, and from an even sum the next tie
// goes the same way. The one that comes in from below does not count: it may
// need no rounding and leave an odd sum. After the first that does, the others
// are one multiplication, which is exact, as is the sum it leads to. Two steps
// below the power of two it ends.
inline double add_repeatedly(double sum, double v, std::size_t n) noexcept {
  constexpr int kMantissaBits = 52;
  constexpr std::int64_t kLastExponent = 2046;
  const auto exponent_of = [](double x) {
    return std::bit_cast<std::int64_t>(x) >> kMantissaBits;
  };
  while (n > 0) {
    const auto exponent = exponent_of(sum);
    sum += v;
    --n;
    const bool stayed = exponent_of(sum) == exponent;
    if (n < 8 || !stayed || exponent < 0 || exponent >= kLastExponent) continue;
    const double step = (sum + v) - sum;
    if (step == 0.0) return sum;
    const auto power = std::bit_cast<double>((exponent + 1) << kMantissaBits);
    const double steps =
        std::min(static_cast<double>(n), (power - sum) / step - 2.0);
    if (steps < 1.0) continue;
    const auto whole = static_cast<std::size_t>(steps);
    sum += static_cast<double>(whole) * step;
    n -= whole;
  }
  return sum;
}

// How many of `values` have the bits of the first one, before one that differs.
inline std::size_t run_length(std::span<const double> values) noexcept {
  const auto first = std::bit_cast<std::uint64_t>(values[0]);
  const auto differs = [&](std::size_t i) {
    return std::bit_cast<std::uint64_t>(values[i]) ^ first;
  };
  std::size_t n = 1;
  while (n + 4 <= values.size() &&
         (differs(n) | differs(n + 1) | differs(n + 2) | differs(n + 3)) == 0)
    n += 4;
  while (n < values.size() && differs(n) == 0) ++n;
  return n;
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
// Cost: about 1 ns a value (bench/histogram_bench.cc). Allocates nothing.
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
      const std::size_t run = internal::run_length(values.subspan(i));
      result.sum = internal::add_repeatedly(result.sum, v, run);
      counts[i & 3][bounds.look_up(v)] += static_cast<std::uint32_t>(run);
      i += run;
    }
  } else {
    double smallest = 0.0;
    const auto count =
        [&](std::array<std::uint32_t, internal::kLocalBuckets>& local,
            double v) {
          smallest = smallest < v ? smallest : v;
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
    // What is not finite shows in the sum.
    if (smallest < 0.0 || !std::isfinite(result.sum)) {
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
