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

// Since 1970. A time may be left out, and is if the clock is none.
inline std::optional<std::uint64_t> milliseconds(double seconds) noexcept {
  constexpr double kEnd = 1e12;
  if (!(seconds >= 0.0 && seconds < kEnd)) return std::nullopt;
  return static_cast<std::uint64_t>(std::llround(seconds * 1e3));
}

}  // namespace vllm_metrics::inline v0
