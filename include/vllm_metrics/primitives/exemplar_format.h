#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace vllm_metrics::inline v0 {

// One observation of a bucket, and the trace that shows where it came from.
// Without a trace id it is none.
//
// Thread-safety: a value.
// Definition: OpenMetrics 1.0 "Exemplars"; the ids are those of W3C Trace
// Context, as numbers: the first hex digit is the highest.
struct Exemplar {
  std::array<std::uint64_t, 2> trace_id = {};  // the higher half first
  std::uint64_t span_id = 0;
  double value = 0.0;      // in the histogram's unit
  double timestamp = 0.0;  // of the observation, seconds since 1970

  constexpr bool valid() const noexcept {
    return (trace_id[0] | trace_id[1]) != 0;
  }
  friend bool operator==(const Exemplar&, const Exemplar&) = default;
};

// In a bank, in a snapshot or in memory that processes share: five words for
// each bucket, in the order of the buckets.
//
//   word 0  trace id, the higher half; with word 1 zero: no exemplar yet
//   1       trace id, the lower half
//   2       span id
//   3       value, a double
//   4       timestamp, a double
using ExemplarWords = std::array<std::uint64_t, 5>;
static_assert(sizeof(Exemplar) == sizeof(ExemplarWords));
static_assert(offsetof(Exemplar, span_id) == 16);
static_assert(offsetof(Exemplar, value) == 24);
static_assert(offsetof(Exemplar, timestamp) == 32);

inline constexpr std::size_t kExemplarWords = ExemplarWords{}.size();

inline ExemplarWords words_of(const Exemplar& exemplar) noexcept {
  return std::bit_cast<ExemplarWords>(exemplar);
}
inline Exemplar exemplar_of(
    std::span<const std::uint64_t, kExemplarWords> words) noexcept {
  ExemplarWords copy;
  std::ranges::copy(words, copy.begin());
  return std::bit_cast<Exemplar>(copy);
}

}  // namespace vllm_metrics::inline v0
