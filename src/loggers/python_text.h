#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string>

namespace vllm_metrics::inline v0 {

// C++ may show the sign of a NaN; Python, whose text the records are, never
// does.
inline double unsigned_nan(double v) {
  return std::isnan(v) ? std::fabs(v) : v;
}

// As Python's str(): the shortest text that reads back, `.0` for whole ones.
inline std::string python_str(double v) {
  std::string text = fmt::format("{}", unsigned_nan(v));
  if (text.find_first_of(".einf") == std::string::npos) text += ".0";
  return text;
}

// As Python's round(v, digits): the nearest decimal, by the exact value of v.
inline double python_round(double v, int digits) {
  if (!std::isfinite(v)) return v;
  double rounded = v;
  const std::string text = fmt::format("{:.{}f}", v, digits);
  std::from_chars(text.data(), text.data() + text.size(), rounded);
  return rounded;
}

}  // namespace vllm_metrics::inline v0
