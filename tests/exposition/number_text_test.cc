#include "vllm_metrics/exposition/number_text.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <utility>

namespace vllm_metrics {
namespace {

std::string text(auto value) {
  char out[kMaxNumberText];
  return {out, write_number(out, value)};
}

// The same rule the slow way: the fewest digits that read back, then Python's
// choice of form, then client_python's rewriting of large positive numbers.
std::string reference(double value) {
  char scientific[40];
  for (int digits = 0; digits < 18; ++digits) {
    std::snprintf(scientific, sizeof scientific, "%.*e", digits, value);
    if (std::strtod(scientific, nullptr) == value) break;
  }
  std::string s = scientific;
  const std::string sign = s.starts_with('-') ? "-" : "";
  s = s.substr(sign.size());
  const int exponent = std::atoi(s.substr(s.find('e') + 1).c_str());
  std::string digits = s.substr(0, s.find('e'));
  std::erase(digits, '.');
  while (digits.size() > 1 && digits.back() == '0') digits.pop_back();
  const auto with_exponent = [&] {
    char tail[8];
    std::snprintf(tail, sizeof tail, "e%+03d", exponent);
    return digits.substr(0, 1) +
           (digits.size() > 1 ? "." + digits.substr(1) : "") + tail;
  };
  if (exponent < -4 || exponent >= 16) return sign + with_exponent();
  if (sign.empty() && exponent >= 6) return with_exponent();
  if (exponent < 0) {
    return sign + "0." +
           std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  }
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() < whole) digits.append(whole - digits.size(), '0');
  const auto fraction = digits.substr(whole);
  return sign + digits.substr(0, whole) + "." +
         (fraction.empty() ? "0" : fraction);
}

TEST_CASE("number text: spelled as client_python spells it", "[exposition]") {
  const auto [value, expected] = GENERATE(table<double, std::string>({
      {0.0, "0.0"},
      {-0.0, "-0.0"},
      {1.0, "1.0"},
      {-1.0, "-1.0"},
      {0.1, "0.1"},
      {0.0001, "0.0001"},
      {0.00001, "1e-05"},
      {1.5e-7, "1.5e-07"},
      {123456.0, "123456.0"},
      {999999.0, "999999.0"},
      {999999.5, "999999.5"},
      {1e6, "1e+06"},
      {1234567.0, "1.234567e+06"},
      {1234567.5, "1.2345675e+06"},
      {1e10, "1e+10"},
      {11701968896.0, "1.1701968896e+10"},
      {1.5e12, "1.5e+12"},
      {1e15, "1e+15"},
      {1e16, "1e+16"},
      {12345678901234567890.0, "1.2345678901234567e+19"},
      {-1e6, "-1000000.0"},
      {-1234567.5, "-1234567.5"},
      {-1e15, "-1000000000000000.0"},
      {-1e16, "-1e+16"},
      {-0.00001, "-1e-05"},
      {0.1 + 0.2, "0.30000000000000004"},
      {1.7e9 + 0.0125, "1.7000000000125e+09"},
      {1e22, "1e+22"},
      {1.7976931348623157e308, "1.7976931348623157e+308"},
      {5e-324, "5e-324"},
      {std::numeric_limits<double>::infinity(), "+Inf"},
      {-std::numeric_limits<double>::infinity(), "-Inf"},
      {std::numeric_limits<double>::quiet_NaN(), "NaN"},
      {-std::numeric_limits<double>::quiet_NaN(), "NaN"},
  }));
  CHECK(text(value) == expected);
}

TEST_CASE("number text: an integer is its nearest double", "[exposition]") {
  const auto [value, expected] = GENERATE(table<std::uint64_t, std::string>({
      {0, "0.0"},
      {999'999, "999999.0"},
      {1'000'000, "1e+06"},
      {1'000'001, "1.000001e+06"},
      {9'007'199'254'740'992, "9.007199254740992e+15"},
      {9'007'199'254'740'993, "9.007199254740992e+15"},
      {10'000'000'000'000'000, "1e+16"},
      {std::uint64_t{1} << 61, "2.305843009213694e+18"},
      {std::numeric_limits<std::uint64_t>::max(), "1.8446744073709552e+19"},
  }));
  CHECK(text(value) == expected);
  CHECK(text(value) == text(static_cast<double>(value)));
}

TEST_CASE("number text: any double reads back, in the fewest digits",
          "[exposition]") {
  std::mt19937_64 random(7);
  std::size_t wrong = 0;
  for (int i = 0; i < 200'000; ++i) {
    auto value = std::bit_cast<double>(random());
    if (i % 3 == 1)
      value = std::ldexp(static_cast<double>(random() >> 40),
                         static_cast<int>(random() % 40) - 20);
    if (i % 3 == 2) value = -std::round(value * 1e3) / 1e3;
    if (!std::isfinite(value)) continue;
    if (text(value) != reference(value)) {
      ++wrong;
      UNSCOPED_INFO(text(value) << " instead of " << reference(value));
    }
  }
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace vllm_metrics
