#include "vllm_metrics/registry/labels.h"

#include <catch2/catch.hpp>
#include <string>
#include <tuple>
#include <utility>

namespace vllm_metrics {
namespace {

using namespace std::string_literals;

const std::string kMark = "\xEF\xBF\xBD";

std::string marks(int n) {
  std::string text;
  for (int i = 0; i < n; ++i) text += kMark;
  return text;
}

TEST_CASE("check_labels: well-formed names are allowed", "[registry]") {
  CHECK(check_labels("f", {}, "le").ok());
  CHECK(check_labels("f", {{"a", ""}, {"_b", ""}, {"C9_", ""}}, "").ok());
  CHECK(check_labels("f", {{"model_name", "any \xFF text\n"}}, "le").ok());
  CHECK(check_labels("f", {{"le", "1"}}, "").ok());
  CHECK(check_labels("f", {{"LE", "1"}, {"les", "1"}}, "le").ok());
  CHECK(check_labels("f", {{"a", "1"}, {"A", "1"}}, "").ok());
}

TEST_CASE(
    "check_labels: a refusal names the family, the label and what is "
    "allowed",
    "[registry]") {
  using Case = std::tuple<Labels, std::string, std::string>;
  const std::string names =
      " is not a label name; allowed: [a-zA-Z_][a-zA-Z0-9_]*";
  const auto [labels, reserved, expected] = GENERATE_COPY(values<Case>({
      {{{"", "v"}}, "", "\"\"" + names},
      {{{"1a", "v"}}, "", "\"1a\"" + names},
      {{{"a-b", "v"}}, "", "\"a-b\"" + names},
      {{{"a b", "v"}}, "", "\"a b\"" + names},
      {{{"a:b", "v"}}, "", "\"a:b\"" + names},
      {{{"a\n", "v"}}, "", "\"a\n\"" + names},
      {{{"\xC3\xA4", "v"}}, "", "\"\xC3\xA4\"" + names},
      {{{"a\xFF", "v"}}, "", "\"a" + kMark + "\"" + names},
      {{{"ok", "v"}, {"a\0b"s, "v"}}, "", "\"a\0b\""s + names},
      {{{"__name__", "v"}},
       "",
       "\"__name__\" starts with \"__\", which Prometheus keeps for itself"},
      {{{"__", "v"}},
       "",
       "\"__\" starts with \"__\", which Prometheus keeps for itself"},
      {{{"le", "v"}}, "le", "\"le\" is written by the exposition itself"},
      {{{"a", "1"}, {"b", "2"}, {"a", "1"}}, "", "\"a\" is given twice"},
      {{{"a", "1"}, {"a", "2"}}, "le", "\"a\" is given twice"},
  }));
  const auto status = check_labels("vllm:f", labels, reserved);
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK(std::string(status.message()) == "family vllm:f: label " + expected);
}

TEST_CASE(
    "normalized: labels are sorted by name, with values that are valid "
    "UTF-8",
    "[registry]") {
  const Labels labels = normalized(
      Labels{{"model_name", "m\xFF"}, {"engine", "0"}, {"Z", "\xC3\xA4"}});
  CHECK(labels == Labels{{"Z", "\xC3\xA4"},
                         {"engine", "0"},
                         {"model_name", "m" + kMark}});
}

TEST_CASE("LabelSet: copies share their labels and equality is by content",
          "[registry]") {
  const LabelSet set{{"engine", "0"}, {"model_name", "m"}};
  const LabelSet copy = set;
  const LabelSet other{{"engine", "0"}, {"model_name", "m"}};
  CHECK(copy.begin() == set.begin());
  CHECK(other.begin() != set.begin());
  CHECK(other == set);
  CHECK_FALSE(LabelSet{{"engine", "1"}} == set);
  CHECK(Labels(set) == Labels{{"engine", "0"}, {"model_name", "m"}});
}

TEST_CASE("LabelSet: without labels it is empty", "[registry]") {
  const LabelSet none = Labels{};
  CHECK(none.empty());
  CHECK(none.size() == 0);
  CHECK(none.begin() == none.end());
  CHECK(none == LabelSet());
  CHECK(Labels(none).empty());
}

TEST_CASE("normalized: a label set that is normal goes on sharing its memory",
          "[registry]") {
  const LabelSet sorted{{"engine", "0"}, {"model_name", "m"}};
  CHECK(normalized(sorted).begin() == sorted.begin());
  const LabelSet unsorted{{"model_name", "m"}, {"engine", "0"}};
  CHECK(normalized(unsorted) == sorted);
}

TEST_CASE("valid_utf8: valid text stays as it is", "[registry]") {
  const std::string text = GENERATE(values<std::string>({
      "",
      "plain",
      "tab\tnewline\nquote\"backslash\\",
      "\0"s,
      "\x7F",
      "\xC2\x80",          // U+0080, the first of two bytes
      "\xDF\xBF",          // U+07FF, the last of two
      "\xE0\xA0\x80",      // U+0800
      "\xED\x9F\xBF",      // U+D7FF, the last before the surrogates
      "\xEE\x80\x80",      // U+E000, the first after them
      "\xEF\xBF\xBD",      // U+FFFD itself
      "\xEF\xBF\xBF",      // U+FFFF, not a character but well-formed
      "\xF0\x90\x80\x80",  // U+10000
      "\xF4\x8F\xBF\xBF",  // U+10FFFF, the last
      "caf\xC3\xA9 \xE6\xA8\xA1\xE5\x9E\x8B \xF0\x9F\xA4\x96",
  }));
  CHECK(valid_utf8(text) == text);
}

// The Unicode standard, chapter 3, "U+FFFD Substitution of Maximal Subparts":
// its four tables, then the ends of the ranges.
TEST_CASE(
    "valid_utf8: one mark stands for each maximal part of a broken "
    "sequence",
    "[registry]") {
  using Case = std::pair<std::string, std::string>;
  const auto [text, expected] = GENERATE(values<Case>({
      // Forms longer than need be.
      {"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", marks(8) + "A"},
      // Surrogates.
      {"\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", marks(8) + "A"},
      // Other ill-formed sequences.
      {"\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", marks(5) + "A" + marks(2) + "B"},
      // Cut off.
      {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", marks(4) + "A"},
      {"\x80", marks(1)},
      {"\xBF", marks(1)},
      {"\xC1\xBF", marks(2)},
      {"\xC2", marks(1)},
      {"\xC2\x7F", marks(1) + "\x7F"},
      {"\xC2\xC0", marks(2)},
      {"\xE0\x9F\xBF", marks(3)},
      {"\xE0\xA0", marks(1)},
      {"\xED\xA0\x80", marks(3)},
      {"\xEF\xBF", marks(1)},
      {"\xF0\x8F\xBF\xBF", marks(4)},
      {"\xF0\x90\x80", marks(1)},
      {"\xF0\x90\x80\xC3\xA9", marks(1) + "\xC3\xA9"},
      {"\xF4\x90\x80\x80", marks(4)},
      {"\xF5\x80\x80\x80", marks(4)},
      {"\xF8\x88\x80\x80\x80", marks(5)},
      {"\xFE\xFF", marks(2)},
      {"caf\xE9 au lait", "caf" + kMark + " au lait"},
  }));
  CHECK(valid_utf8(text) == expected);
  CHECK(valid_utf8(expected) == expected);
}

// The family's name went into the message as it was, here one that no
// registration would have let through.
TEST_CASE("check_labels: its message is UTF-8, whatever the family is called",
          "[registry]") {
  const auto status = check_labels("a\xD8", {{"1x", ""}}, "");
  const std::string text(status.message());
  CHECK(valid_utf8(text) == text);
  CHECK(text.find("family a" + kMark + ":") == 0);
}

}  // namespace
}  // namespace vllm_metrics
