#pragma once

#include <cstdint>
#include <limits>

namespace vllm_metrics::inline v0 {

// a + b, or the nearest integer there is: an engine's absurd count must not be
// undefined behaviour.
constexpr std::int64_t saturating_add(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) [[likely]]
    return sum;
  return a < 0 ? std::numeric_limits<std::int64_t>::min()
               : std::numeric_limits<std::int64_t>::max();
}

// a - b, likewise.
constexpr std::int64_t saturating_sub(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t difference = 0;
  if (!__builtin_sub_overflow(a, b, &difference)) [[likely]]
    return difference;
  return a < 0 ? std::numeric_limits<std::int64_t>::min()
               : std::numeric_limits<std::int64_t>::max();
}

// saturating_add() in place.
constexpr void saturating_add_to(std::int64_t& sum, std::int64_t n) noexcept {
  sum = saturating_add(sum, n);
}

}  // namespace vllm_metrics::inline v0
