#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

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
  std::array<char, 56> request_id = {};  // a text, zeros behind its end

  constexpr bool valid() const noexcept {
    return (trace_id[0] | trace_id[1]) != 0;
  }
  friend bool operator==(const Exemplar&, const Exemplar&) = default;
};

// A request's id as the value of a label: printable ASCII, `?` for what is not.
class RequestIdText {
 public:
  explicit constexpr RequestIdText(const Exemplar& exemplar) noexcept {
    for (const char c : exemplar.request_id) {
      if (c == '\0') break;
      bytes_[size_++] = c < ' ' || c > '~' ? '?' : c;
    }
  }
  constexpr std::string_view view() const noexcept {
    return {bytes_.data(), size_};
  }

 private:
  std::array<char, 56> bytes_ = {};
  std::size_t size_ = 0;
};

// In a bank, in a snapshot or in memory that processes share: twelve words for
// each bucket, in the order of the buckets.
//
//   word 0  trace id, the higher half; with word 1 zero: no exemplar yet
//   1       trace id, the lower half
//   2       span id
//   3       value, a double
//   4       timestamp, a double
//   5 to 11 the request's id, zeros behind its end
using ExemplarWords = std::array<std::uint64_t, 12>;
static_assert(sizeof(Exemplar) == sizeof(ExemplarWords));
static_assert(offsetof(Exemplar, span_id) == 16);
static_assert(offsetof(Exemplar, value) == 24);
static_assert(offsetof(Exemplar, timestamp) == 32);
static_assert(offsetof(Exemplar, request_id) == 40);

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
