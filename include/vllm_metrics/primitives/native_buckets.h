#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace vllm_metrics::inline v0 {

// How finely, and in how much memory, a native histogram counts.
struct NativeHistogramOptions {
  // The resolution to begin with, -4 to 8: bounds grow by 2^(2^-schema), e.g.
  // 3: 9 % a bucket, 5: 2.2 %, 0: the powers of two. It falls by one whenever
  // the values are too far apart for `max_buckets`, and never rises again.
  int schema = 3;

  // Buckets, 132 to 4096, of 8 bytes each and twice that in an engine's bank:
  // 160 hold factors of a million at schema 3, of a thousand at schema 4. 132
  // of schema -4 hold every double.
  std::uint32_t max_buckets = 160;

  // Values up to this one, 0 to 1, count as zero, in a bucket of their own.
  double zero_threshold = 0x1p-128;
};

inline constexpr int kMinNativeSchema = -4;
inline constexpr int kMaxNativeSchema = 8;
inline constexpr std::uint32_t kMinNativeBuckets = 132;
inline constexpr std::uint32_t kMaxNativeBuckets = 4096;

// The exponential buckets of native histograms: bucket i of schema s holds the
// values above 2^((i - 1) * 2^-s), up to 2^(i * 2^-s) and with it. A bucket of
// a schema is two of the next, so that the index at the finest schema says it
// all, and any other is a shift of it.
//
// Definition: Prometheus "Native Histograms", standard exponential schemas; the
// bounds are the nearest doubles.
namespace native {

namespace internal {

// The square root of `v`, 1 to 4, for constants: std::sqrt is none in C++20.
constexpr long double root(long double v) noexcept {
  long double x = 1.5L;
  for (int i = 0; i < 7; ++i) x = (x + v / x) / 2;
  return x;
}

constexpr int kMantissaBits = 52;
constexpr std::uint64_t kMantissaMask = (std::uint64_t{1} << kMantissaBits) - 1;
constexpr std::size_t kPerOctave = std::size_t{1} << kMaxNativeSchema;
constexpr int kRestBits = kMantissaBits - kMaxNativeSchema - 1;
constexpr std::uint64_t kRestMask = (std::uint64_t{1} << kRestBits) - 1;

// An octave of the finest schema.
//
// The search takes a cell of the first nine mantissa bits. Bounds are at least
// 1.4 cells apart, so at most one lies in it, `k` of them below it, and
// `k + (rest > bound)` is the place in the octave. That compare is the carry of
// an addition, and the table holds all that is to be added to the value's bits
// for the index to come out on top.
struct Octave {
  std::array<std::uint64_t, kPerOctave> bounds{};  // mantissas, lower ends
  std::array<std::uint64_t, 2 * kPerOctave> addends{};

  constexpr Octave() noexcept {
    // Each is the root of one twice as far up, an octave or less.
    std::array<long double, kPerOctave> values{};
    values[0] = 1.0L;
    for (std::size_t step = kPerOctave / 2; step >= 1; step /= 2) {
      for (std::size_t k = step; k < kPerOctave; k += 2 * step) {
        const long double square = values[2 * k % kPerOctave];
        values[k] = root(2 * k < kPerOctave ? square : 2 * square);
      }
    }
    for (std::size_t k = 0; k < kPerOctave; ++k) {
      bounds[k] = std::bit_cast<std::uint64_t>(static_cast<double>(values[k])) &
                  kMantissaMask;
    }
    std::size_t k = 0;
    for (std::size_t cell = 0; cell < addends.size(); ++cell) {
      const std::uint64_t start = cell << kRestBits;
      while (k < kPerOctave && bounds[k] < start) ++k;
      const bool inside = k < kPerOctave && bounds[k] - start <= kRestMask;
      const std::uint64_t carry = inside ? kRestMask - (bounds[k] - start) : 0;
      addends[cell] = 2 * ((k << kRestBits) + carry) - start;
    }
  }
};
inline constexpr Octave kOctave;

}  // namespace internal

// A finest_index() as it comes out of the search: not negative, with
// kPlaceBits of no meaning below. For values that are not normal and positive
// it lies beyond all that are.
inline constexpr int kPlaceBits = internal::kRestBits + 1;
inline constexpr std::int32_t kPlaceOfOne = 1023 << kMaxNativeSchema;

inline std::uint64_t place_of(double v) noexcept {
  using namespace internal;
  const auto bits = std::bit_cast<std::uint64_t>(v);
  const std::size_t cell = bits >> kRestBits & (2 * kPerOctave - 1);
  return bits + (bits & kRestMask) + kOctave.addends[cell];
}

// The index, at the finest schema, of a positive finite value.
inline std::int32_t finest_index(double v) noexcept {
  const auto of_normal = [](double normal) {
    return static_cast<std::int32_t>(place_of(normal) >> kPlaceBits) -
           kPlaceOfOne;
  };
  if (v >= std::numeric_limits<double>::min()) [[likely]]
    return of_normal(v);
  constexpr int kOctaves = 52;
  return of_normal(v * 0x1p52) - (kOctaves << kMaxNativeSchema);
}

// The bucket of a coarser schema, `steps` below the one of `index`.
inline std::int32_t coarser_index(std::int32_t index, int steps) noexcept {
  return (index + (1 << steps) - 1) >> steps;
}

// The index of a positive finite value.
inline std::int32_t index_of(double v, int schema) noexcept {
  return coarser_index(finest_index(v), kMaxNativeSchema - schema);
}

// The upper bound of a bucket, which is the lower one of the next. The last
// bucket's is the largest double, since no finite value lies above.
inline double upper_bound(std::int32_t index, int schema) noexcept {
  using namespace internal;
  constexpr std::int64_t kFarOctave = 2048;
  const std::int64_t finest = std::int64_t{index}
                              << (kMaxNativeSchema - schema);
  const auto mantissa =
      kOctave.bounds[static_cast<std::size_t>(finest) & (kPerOctave - 1)];
  const auto octave = std::clamp<std::int64_t>(finest >> kMaxNativeSchema,
                                               -kFarOctave, kFarOctave);
  const double bound = std::ldexp(
      std::bit_cast<double>(mantissa | std::bit_cast<std::uint64_t>(1.0)),
      static_cast<int>(octave));
  return std::min(bound, std::numeric_limits<double>::max());
}

}  // namespace native
}  // namespace vllm_metrics::inline v0
