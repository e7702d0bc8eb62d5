#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace vllm_metrics::inline v0 {

// What every format says of an exemplar in the same way.

inline constexpr std::size_t kWordDigits = 16;

// Returns the end.
inline char* append_hex(char* out, std::uint64_t word) noexcept {
  for (std::size_t i = kWordDigits; i-- > 0; word >>= 4)
    out[i] = "0123456789abcdef"[word & 15];
  return out + kWordDigits;
}

// Since 1970. A time may be left out, and is if the clock is none: negative,
// NaN, or earlier than a millisecond, as which loggers note such a one.
inline std::optional<std::uint64_t> milliseconds(double seconds) noexcept {
  constexpr double kBegin = 1e-3;
  constexpr double kEnd = 1e12;
  if (!(seconds >= kBegin && seconds < kEnd)) return std::nullopt;
  return static_cast<std::uint64_t>(std::llround(seconds * 1e3));
}

}  // namespace vllm_metrics::inline v0
