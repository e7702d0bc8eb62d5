#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>

#include "vllm_metrics/primitives/native_buckets.h"

namespace vllm_metrics::inline v0::native {

// `size` buckets in a row, from number `first` of a schema on.
struct Window {
  int schema;
  std::int32_t first;
  std::uint32_t size;
  double zero_threshold;
};

// Counts the first of `values`, which are plain numbers (internal::is_plain),
// and returns how many: as many as lie in the window, short of a chunk that has
// one which does not, or is small. `add(slot, n)` is called with what each
// bucket gains.
//
// Counts gather in a local word for each bucket, whose four bytes take turns,
// since two equal buckets in a row would wait for each other's store.
// Cost: as the tally of classic buckets. Allocates nothing.
template <class AddToBucket>
std::size_t tally(const Window& window, std::span<const double> values,
                  AddToBucket&& add) {
  constexpr std::size_t kMostBuckets = 256;
  constexpr std::size_t kLeast = 32;
  constexpr std::size_t kMost = 4 * 255;  // before a byte overflows
  // So that values at or below the threshold lie outside, with no compare.
  const double too_low =
      std::max(window.zero_threshold, 2 * std::numeric_limits<double>::min());
  if (window.size > kMostBuckets || window.schema < 0 ||
      window.first <= index_of(too_low, window.schema)) {
    return 0;
  }
  const int steps = kMaxNativeSchema - window.schema;
  const int shift = kPlaceBits + steps;
  // Coarser indexes round up.
  const std::int64_t start =
      kPlaceOfOne + (std::int64_t{window.first - 1} << steps) + 1;
  const std::uint64_t lowest = static_cast<std::uint64_t>(start) << kPlaceBits;
  const std::uint64_t outside = window.size;
  const auto slot_of = [&](double v) {
    return std::min((place_of(v) - lowest) >> shift, outside);
  };
  std::array<std::array<std::uint8_t, 4>, kMostBuckets + 4> local;
  const auto gained = [&local](std::size_t slot) {
    const auto& bytes = local[slot];
    return std::uint64_t{bytes[0]} + bytes[1] + bytes[2] + bytes[3];
  };

  std::size_t done = 0;
  while (values.size() - done >= kLeast) {
    const double* const v = values.data() + done;
    const std::size_t n = std::min(values.size() - done, kMost) / 4 * 4;
    std::memset(local.data(), 0, (outside + 4) * sizeof local[0]);
    for (std::size_t i = 0; i < n; i += 4) {
      ++local[slot_of(v[i])][0];
      ++local[slot_of(v[i + 1])][1];
      ++local[slot_of(v[i + 2])][2];
      ++local[slot_of(v[i + 3])][3];
    }
    if (gained(outside) != 0) break;
    // Most buckets are empty: a look at four of them.
    for (std::size_t four = 0; four < outside; four += 4) {
      std::array<std::uint64_t, 2> words;
      std::memcpy(words.data(), local.data() + four, sizeof words);
      if ((words[0] | words[1]) == 0) continue;
      for (std::size_t slot = four; slot < four + 4; ++slot) {
        if (gained(slot) != 0) add(slot, gained(slot));
      }
    }
    done += n;
  }
  return done;
}

}  // namespace vllm_metrics::inline v0::native
