#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <string_view>

namespace vllm_metrics::inline v0 {

// The id that an engine knows a request by, which its exemplars and its span
// show. Kept are the first 55 bytes, in whole characters of UTF-8: so many do
// the 128 characters leave that OpenMetrics has for the labels of an exemplar.
// Keeping it allocates nothing.
//
// Thread-safety: a value.
class RequestId {
 public:
  static constexpr std::size_t kMost = 55;

  constexpr RequestId() = default;
  // Ends at the first zero byte.
  template <std::convertible_to<std::string_view> Text>
  constexpr RequestId(const Text& text) noexcept {
    const std::string_view id(text);
    std::size_t size = std::min({id.size(), id.find('\0'), kMost});
    while (size > 0 && size < id.size() && continues(id[size])) --size;
    std::copy_n(id.data(), size, bytes_.data());
  }

  constexpr std::string_view view() const noexcept { return {bytes_.data()}; }
  constexpr bool empty() const noexcept { return bytes_[0] == '\0'; }

  // Zeros behind its end.
  constexpr const std::array<char, kMost + 1>& bytes() const noexcept {
    return bytes_;
  }

  friend bool operator==(const RequestId&, const RequestId&) = default;

 private:
  // A byte inside a character.
  static constexpr bool continues(char c) noexcept {
    return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
  }

  std::array<char, kMost + 1> bytes_ = {};
};

}  // namespace vllm_metrics::inline v0
