#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "vllm_metrics/primitives/native_buckets.h"

namespace vllm_metrics::inline v0 {

// A native histogram as plain data: what its words say. The count and the sum
// are those of the classic histogram that it belongs to.
struct NativeView {
  int schema = 0;
  double zero_threshold = 0.0;
  std::uint64_t zero_count = 0;
  std::int32_t first_index = 0;                // of counts[0]
  std::span<const std::uint64_t> counts = {};  // not cumulative
};

// The words of a native histogram, in a bank, in a snapshot or in memory that
// processes share; behind them nothing else is needed to read it:
//
//   word 0  schema now, signed; falls when the values are too far apart
//   1       index of the first bucket, signed; moves with the values
//   2       zero threshold, a double; constant
//   3       zero count
//   4 ...   a count for each bucket, in order, as many as max_buckets
//
// All zero they are an empty histogram of schema 0.
inline constexpr std::size_t kNativeHeaderWords = 4;

constexpr std::size_t native_word_count(std::uint32_t max_buckets) noexcept {
  return max_buckets == 0 ? 0 : kNativeHeaderWords + max_buckets;
}

// Reads words from anywhere: what no writer of ours leaves there is clamped to
// what arithmetic can bear. Empty for fewer words than a header has.
inline NativeView native_view(std::span<const std::uint64_t> words) noexcept {
  if (words.size() < kNativeHeaderWords) return {};
  const auto schema =
      std::clamp<std::int64_t>(std::bit_cast<std::int64_t>(words[0]),
                               kMinNativeSchema, kMaxNativeSchema);
  // Beyond all doubles.
  const std::int64_t far =
      (std::int64_t{1} << 19) >> (kMaxNativeSchema - schema);
  const auto threshold = std::bit_cast<double>(words[2]);
  const bool usable =
      threshold >= 0.0 && threshold <= std::numeric_limits<double>::max();
  return {.schema = static_cast<int>(schema),
          .zero_threshold = usable ? threshold : 0.0,
          .zero_count = words[3],
          .first_index = static_cast<std::int32_t>(
              std::clamp(std::bit_cast<std::int64_t>(words[1]), -far, far)),
          .counts = words.subspan(kNativeHeaderWords)};
}

}  // namespace vllm_metrics::inline v0
