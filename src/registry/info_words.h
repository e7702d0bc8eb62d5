#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "vllm_metrics/primitives/bank.h"
#include "vllm_metrics/registry/labels.h"

namespace vllm_metrics::inline v0 {

// The cells of one info series whose labels change, in a bank of its own:
//
//   0      value, a double: a time
//   1      time of the last write
//   2      bit 63: on the page; else only its time counts, for the like of it.
//          Below: size of the text, bytes; 0: no series
//   3 ...  the text: of each label name and value, each ended by a zero byte
struct InfoWords {
  static constexpr std::size_t kTextBytes = 2048;
  static constexpr std::size_t kCellCount = 3 + kTextBytes / 8;

  // The text of a label more. A zero byte would end it, and is left out.
  static void append(std::string& text, std::string_view name,
                     std::string_view value, std::string_view tail = {}) {
    text.append(name).push_back('\0');
    for (const char c : value) {
      if (c != '\0') text.push_back(c);
    }
    text.append(tail).push_back('\0');
  }

  // The time of the section becomes the value. `text`: at most kTextBytes.
  static void write(Bank::Section& section, double now, std::string_view text,
                    bool is_shown) noexcept {
    section.set({.value = 0}, now);
    section.store(2, text.size() | (is_shown ? kShown : 0));
    for (std::uint32_t cell = 3; !text.empty(); ++cell) {
      std::uint64_t word = 0;
      const std::size_t n = std::min(text.size(), sizeof word);
      std::memcpy(&word, text.data(), n);
      section.store(cell, word);
      text.remove_prefix(n);
    }
  }

  static bool is_shown(std::span<const std::uint64_t> cells) {
    return (cells[2] & kShown) != 0;
  }
  static std::string_view text(std::span<const std::uint64_t> cells) {
    const std::uint64_t size = cells[2] & ~kShown;
    return {reinterpret_cast<const char*>(cells.data() + 3),
            size > (cells.size() - 3) * 8 ? 0 : size};
  }

  // Nothing for what append() did not make.
  static std::optional<Labels> labels(std::string_view text) {
    Labels made;
    while (!text.empty()) {
      std::string* parts[2];
      Label& label = made.emplace_back();
      parts[0] = &label.name;
      parts[1] = &label.value;
      for (std::string* const part : parts) {
        const std::size_t end = text.find('\0');
        if (end == std::string_view::npos) return std::nullopt;
        *part = text.substr(0, end);
        text.remove_prefix(end + 1);
      }
    }
    return made;
  }

 private:
  static constexpr std::uint64_t kShown = std::uint64_t{1} << 63;
};

}  // namespace vllm_metrics::inline v0
