#include "vllm_metrics/registry/labels.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"

namespace vllm_metrics::inline v0 {
namespace {

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_label_name(std::string_view name) {
  return !name.empty() && is_letter(name.front()) &&
         std::ranges::all_of(
             name, [](char c) { return is_letter(c) || is_digit(c); });
}

// What may follow a lead byte: how many bytes, and the range of the first of
// them, which rules out overlong forms, surrogates and values past U+10FFFF.
struct Utf8Lead {
  std::size_t trail;
  unsigned char low, high;
};

Utf8Lead lead_of(unsigned char c) {
  if (c >= 0xC2 && c <= 0xDF) return {1, 0x80, 0xBF};
  if (c == 0xE0) return {2, 0xA0, 0xBF};
  if (c == 0xED) return {2, 0x80, 0x9F};
  if (c >= 0xE1 && c <= 0xEF) return {2, 0x80, 0xBF};
  if (c == 0xF0) return {3, 0x90, 0xBF};
  if (c >= 0xF1 && c <= 0xF3) return {3, 0x80, 0xBF};
  if (c == 0xF4) return {3, 0x80, 0x8F};
  return {0, 0, 0};
}

// How many bytes at the start of `text` are a character, or (not `valid`) a
// maximal part of one.
std::size_t sequence_length(std::string_view text, bool& valid) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return valid = true, 1;
  auto [trail, low, high] = lead_of(first);
  std::size_t n = 1;
  for (; n <= trail && n < text.size(); ++n) {
    const auto c = static_cast<unsigned char>(text[n]);
    if (c < low || c > high) break;
    low = 0x80;
    high = 0xBF;
  }
  valid = trail != 0 && n == trail + 1;
  return n;
}

}  // namespace

absl::Status check_labels(std::string_view family, const LabelSet& labels,
                          std::string_view reserved) {
  const auto refuse = [&](const Label& label, std::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("family ", valid_utf8(family), ": label \"",
                     valid_utf8(label.name), "\" ", std::string(why)));
  };
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const Label& label = labels[i];
    if (!is_label_name(label.name)) {
      return refuse(label,
                    "is not a label name; allowed: [a-zA-Z_][a-zA-Z0-9_]*");
    }
    if (label.name.starts_with("__"))
      return refuse(label,
                    "starts with \"__\", which Prometheus keeps for itself");
    if (!reserved.empty() && label.name == reserved)
      return refuse(label, "is written by the exposition itself");
    const auto same = [&](const Label& other) {
      return other.name == label.name;
    };
    if (std::any_of(labels.begin(), labels.begin() + i, same)) {
      return refuse(label, "is given twice");
    }
  }
  return absl::OkStatus();
}

Labels normalized(Labels labels) {
  std::ranges::sort(labels, {}, &Label::name);
  for (Label& label : labels) label.value = valid_utf8(label.value);
  return labels;
}

LabelSet normalized(LabelSet labels) {
  Labels changed = normalized(Labels(labels));
  if (std::ranges::equal(changed, labels)) return labels;
  return changed;
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    bool valid = false;
    const std::size_t n = sequence_length(text, valid);
    out += valid ? text.substr(0, n) : std::string_view("\xEF\xBF\xBD");
    text.remove_prefix(n);
  }
  return out;
}

}  // namespace vllm_metrics::inline v0
