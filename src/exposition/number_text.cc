#include "vllm_metrics/exposition/number_text.h"

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace vllm_metrics::inline v0 {
namespace {

constexpr std::uint64_t kFirstWithExponent = 1'000'000;
constexpr std::uint64_t kExactIntegers = std::uint64_t{1} << 53;

char* append(char* out, std::string_view text) {
  std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

char* write_small(char* out, std::uint64_t value) {
  out = std::to_chars(out, out + kMaxNumberText,
                      static_cast<std::uint32_t>(value))
            .ptr;
  return append(out, ".0");
}

// d[.ddd]e+XX of an integer from a million to 2^53, where the shortest text of
// the double is the integer's own digits.
char* write_large(char* out, std::uint64_t value) {
  char digits[20] = {};
  const char* const end =
      std::to_chars(digits, digits + sizeof digits, value).ptr;
  const auto exponent = static_cast<unsigned>(end - digits) - 1;
  std::string_view fraction(digits + 1, exponent);
  fraction = fraction.substr(0, fraction.find_last_not_of('0') + 1);
  *out++ = digits[0];
  if (!fraction.empty()) {
    *out++ = '.';
    out = append(out, fraction);
  }
  out = append(out, exponent < 10 ? "e+0" : "e+");
  return std::to_chars(out, out + 2, exponent).ptr;
}

// `scientific` is to_chars' shortest d[.ddd]e+XX without sign; writes the same
// digits around a plain decimal point.
char* write_plain(char* out, std::string_view scientific, int exponent) {
  char digits[24];
  char* end = digits;
  *end++ = scientific.front();
  const auto e = scientific.find('e');
  if (e > 2) end = append(end, scientific.substr(2, e - 2));
  const std::string_view all(digits, static_cast<std::size_t>(end - digits));
  if (exponent < 0) {
    out = append(
        out, std::string_view("0.000", static_cast<std::size_t>(1 - exponent)));
    return append(out, all);
  }
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  out = append(out, all.substr(0, whole));
  for (std::size_t i = all.size(); i < whole; ++i) *out++ = '0';
  *out++ = '.';
  return append(out, whole < all.size() ? all.substr(whole) : "0");
}

}  // namespace

char* write_number(char* out, std::uint64_t value) noexcept {
  if (value < kFirstWithExponent) [[likely]] {
    return write_small(out, value);
  }
  if (value <= kExactIntegers) return write_large(out, value);
  return write_number(out, static_cast<double>(value));
}

char* write_number(char* out, double value) noexcept {
  if (value >= 0.0 && value < static_cast<double>(kExactIntegers)) {
    const auto whole = static_cast<std::uint64_t>(value);
    if (static_cast<double>(whole) == value &&
        !(whole == 0 && std::signbit(value)))
      return write_number(out, whole);
  }
  if (std::isnan(value)) return append(out, "NaN");
  if (std::isinf(value)) return append(out, value > 0 ? "+Inf" : "-Inf");

  char text[kMaxNumberText];
  const char* const end = std::to_chars(text, text + sizeof text, value,
                                        std::chars_format::scientific)
                              .ptr;
  std::string_view scientific(text, static_cast<std::size_t>(end - text));
  const bool negative = scientific.front() == '-';
  if (negative) {
    *out++ = '-';
    scientific.remove_prefix(1);
  }
  int exponent = 0;
  const char* exponent_text = scientific.data() + scientific.find('e') + 1;
  if (*exponent_text == '+') ++exponent_text;
  std::from_chars(exponent_text, end, exponent);
  // Python's repr has an exponent below 1e-4 and from 1e16 on; Go, which
  // client_python follows for positive numbers, already from 1e6 on.
  const int last_plain = negative ? 15 : 5;
  if (exponent < -4 || exponent > last_plain) return append(out, scientific);
  return write_plain(out, scientific, exponent);
}

}  // namespace vllm_metrics::inline v0
