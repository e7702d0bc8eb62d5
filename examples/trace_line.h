// Trace format 1, written: one line, which TraceRecorder (trace_recorder.h)
// fills with what trace_stats.h knows.

#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vllm_metrics/registry/labels.h"

// One line of a trace: a JSON object, written member by member. Numbers are
// the shortest text that reads back as the same number. A struct is an object
// of what its write_members(TraceLine&, const Struct&) adds.
class TraceLine {
 public:
  // A count with a name that the format does not know beforehand.
  using NamedCount = std::pair<std::string, std::int64_t>;

  explicit TraceLine(std::string_view op) { member("op", op); }

  template <class T>
  TraceLine& member(std::string_view name, const T& value) {
    if (text_.back() != '{') text_ += ',';
    put(name);
    text_ += ':';
    put(value);
    return *this;
  }

  // The line; nothing can be added after it.
  std::string_view finish() {
    text_ += "}\n";
    return text_;
  }

 private:
  void put(const char*) = delete;  // would be taken for a bool
  void put(bool value) { text_ += value ? "true" : "false"; }
  void put(int value) { put(std::int64_t{value}); }
  void put(std::int64_t value) { put_digits(value); }

  void put(double value) {
    if (std::isnan(value)) return put(std::string_view("NaN"));
    if (std::isinf(value)) {
      return put(std::string_view(value > 0 ? "Infinity" : "-Infinity"));
    }
    const std::size_t start = text_.size();
    put_digits(value);
    if (text_.find_first_of(".e", start) == text_.npos) text_ += ".0";
  }

  void put(std::string_view value) {
    constexpr std::string_view kHex = "0123456789abcdef";
    text_ += '"';
    for (const char c : vllm_metrics::valid_utf8(value)) {
      if (c == '"' || c == '\\') {
        text_ += '\\';
        text_ += c;
      } else if (const auto u = static_cast<unsigned char>(c); u < 0x20) {
        text_.append("\\u00").append({kHex[u / 16], kHex[u % 16]});
      } else {
        text_ += c;
      }
    }
    text_ += '"';
  }
  void put(const std::string& value) { put(std::string_view(value)); }

  template <class T>
  void put(const std::optional<T>& value) {
    value.has_value() ? put(*value) : void(text_ += "null");
  }

  template <class T>
  void put(const std::vector<T>& values) {
    text_ += '[';
    for (const T& value : values) {
      if (text_.back() != '[') text_ += ',';
      put(value);
    }
    text_ += ']';
  }

  void put(const std::vector<NamedCount>& counts) {
    text_ += '{';
    for (const auto& [name, count] : counts) member(name, count);
    text_ += '}';
  }

  void put(const std::pair<std::string, std::string>& pair) {
    put(std::vector<std::string>{pair.first, pair.second});
  }

  template <class Struct>
  void put(const Struct& value) {
    text_ += '{';
    write_members(*this, value);
    text_ += '}';
  }

  template <class Number>
  void put_digits(Number value) {
    std::array<char, 32> digits{};
    const auto end =
        std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    text_.append(digits.data(), end);
  }

  std::string text_ = "{";
};
