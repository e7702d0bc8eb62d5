#include "src/exposition/page_line.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <system_error>

namespace vllm_metrics::inline v0 {
namespace {

constexpr std::uint8_t kInLabelName = 1;
constexpr std::uint8_t kInMetricName = 2;

constexpr std::array<std::uint8_t, 256> kCharacters = [] {
  std::array<std::uint8_t, 256> table{};
  for (unsigned c = 'a'; c <= 'z'; ++c) table[c] = 3;
  for (unsigned c = 'A'; c <= 'Z'; ++c) table[c] = 3;
  for (unsigned c = '0'; c <= '9'; ++c) table[c] = 3;
  table['_'] = 3;
  table[':'] = kInMetricName;
  return table;
}();

bool is_in(std::uint8_t set, char c) {
  return (kCharacters[static_cast<unsigned char>(c)] & set) != 0;
}
const char* skip(std::uint8_t set, const char* p, const char* end) {
  while (p != end && is_in(set, *p)) ++p;
  return p;
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_metric_name(std::string_view name) {
  return !name.empty() && !is_digit(name.front()) &&
         std::ranges::all_of(name,
                             [](char c) { return is_in(kInMetricName, c); });
}

// Whole numbers, the most of a page: up to 15 digits, then nothing or `.0`.
bool parse_whole(std::string_view text, double& out) {
  constexpr std::size_t kExactDigits = 15;
  if (text.ends_with(".0")) text.remove_suffix(2);
  if (text.empty() || text.size() > kExactDigits) return false;
  std::int64_t value = 0;
  for (const char c : text) {
    if (!is_digit(c)) return false;
    value = value * 10 + (c - '0');
  }
  out = static_cast<double>(value);
  return true;
}

// Of `1e400` and `1e-400`, which a double cannot hold: infinity and 0, as
// Python has it.
double out_of_range(std::string_view text) {
  const bool negative = text.front() == '-';
  const std::size_t e = std::min(text.find_first_of("eE"), text.size());
  std::string_view exponent_text = text.substr(std::min(e + 1, text.size()));
  if (exponent_text.starts_with('+')) exponent_text.remove_prefix(1);
  const char* const end = exponent_text.data() + exponent_text.size();
  std::int64_t exponent = 0;
  if (std::from_chars(exponent_text.data(), end, exponent).ec ==
      std::errc::result_out_of_range) {
    exponent = exponent_text.starts_with('-') ? INT32_MIN : INT32_MAX;
  }
  // How far the first digit that counts stands before the point.
  const std::string_view digits = text.substr(0, e);
  const std::size_t point = std::min(digits.find('.'), digits.size());
  const std::size_t first = digits.find_first_of("123456789");
  const bool tiny = exponent + static_cast<std::int64_t>(point) <
                    static_cast<std::int64_t>(first);
  const double size = tiny ? 0.0 : std::numeric_limits<double>::infinity();
  return negative ? -size : size;
}

}  // namespace

bool parse_number(std::string_view text, double& out) noexcept {
  if (parse_whole(text, out)) return true;
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return false;
  }
  if (text.ends_with(')')) return false;  // nan(1), which from_chars takes
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, out);
  if (read.ptr != end) return false;
  if (read.ec == std::errc::result_out_of_range) out = out_of_range(text);
  return read.ec != std::errc::invalid_argument;
}

void PageLineReader::begin(std::string_view line, std::size_t number) noexcept {
  begin_ = p_ = line.data();
  end_ = begin_ + line.size();
  number_ = number;
}

void PageLineReader::note(const char* at, std::string message) {
  faults_.note(number_, static_cast<std::size_t>(at - begin_) + 1,
               std::move(message));
}

bool PageLineReader::fail(const char* at, std::string message) {
  note(at, std::move(message));
  return false;
}

void PageLineReader::separate_slowly() {
  if (p_ != begin_ && p_[-1] == ' ') --p_;  // which separate() stepped over
  const char* const start = p_;
  while (p_ != end_ && is_blank(*p_)) ++p_;
  if (open_metrics_ && (p_ - start != 1 || *start != ' '))
    note(start, "OpenMetrics has one space here, no more and no tab");
}

void PageLineReader::skip_blanks_slowly() {
  if (open_metrics_) note(p_, "OpenMetrics has no blank here");
  while (p_ != end_ && is_blank(*p_)) ++p_;
}

std::string_view PageLineReader::token() noexcept {
  const char* const start = p_;
  p_ = std::find_if(start, end_, is_blank);
  return {start, p_};
}

bool PageLineReader::read_sample(std::string_view line, std::size_t number,
                                 SampleLine& out) {
  begin(line, number);
  out.line = number;
  before_le_ = behind_le_ = {};
  const std::size_t faults = faults_.count();
  skip_blanks();
  const char* const start = p_;
  const bool repeats = rest().starts_with(out.name);
  const char* const before = repeats ? start + out.name.size() : start;
  p_ = skip(kInMetricName, before, end_);
  out.repeats_name = repeats && p_ == before;
  out.name = {start, p_};
  if (out.name.empty() || is_digit(*start)) {
    p_ = start;
    return fail(start, message("a sample begins with the metric's name, not ",
                               here(), "; allowed: [a-zA-Z_:][a-zA-Z0-9_:]*"));
  }
  out.labels.clear();
  if (!open_metrics_) skip_blanks();
  if (at('{')) {
    if (!read_labels(out.labels, known_labels_) ||
        !sort_labels(out.labels, start))
      return false;
    separate();
  } else if (open_metrics_) {
    separate();
  }
  const char* const value = p_;
  if (!read_number("value", out.value)) return false;
  if (faults_.count() == faults) frame_le(out, value);
  out.timestamp.reset();
  out.has_exemplar = false;
  if (p_ == end_) [[likely]] {
    return true;
  }
  separate();
  if (p_ != end_ && *p_ != '#') {
    if (!read_timestamp(out.timestamp)) return false;
    if (p_ != end_) separate();
  }
  if (p_ == end_) return true;
  if (*p_ != '#') {
    return fail(
        p_, message("after value and timestamp the line ends, not ", here()));
  }
  if (!open_metrics_) {
    note(p_,
         "an exemplar; only OpenMetrics has them, the text format does not");
  }
  out.has_exemplar = read_exemplar(out.exemplar);
  return true;  // a faulty exemplar takes nothing from the sample
}

void PageLineReader::frame_le(const SampleLine& sample,
                              const char* value) noexcept {
  for (std::size_t i = 0; i < sample.labels.size(); ++i) {
    const auto& [text, label] = known_labels_[i];
    if (label.name != "le") continue;
    const std::size_t quotes = text.find('"');
    before_le_ = {begin_, text.data() + quotes + 1};
    behind_le_ = {text.data() + text.size() - 1, value};
    return;
  }
}

bool PageLineReader::read_next_bucket(std::string_view line,
                                      NextBucket& out) const noexcept {
  if (before_le_.empty() || !line.starts_with(before_le_)) return false;
  line.remove_prefix(before_le_.size());
  std::size_t end = 0;
  while (end < line.size() && line[end] != '"' && line[end] != '\\') ++end;
  out.le = line.substr(0, end);
  line.remove_prefix(end);
  if (!line.starts_with(behind_le_)) return false;
  return parse_number(line.substr(behind_le_.size()), out.value);
}

bool PageLineReader::read_labels(std::vector<PageLabel>& out,
                                 std::vector<KnownLabel>& known) {
  ++p_;  // the brace
  skip_blanks();
  for (std::size_t index = 0; !at('}'); ++index) {
    const char* const start = p_;
    if (index < known.size() && rest().starts_with(known[index].text)) {
      out.push_back(known[index].label);
      p_ = start + known[index].text.size();
      known[index].text = {start, p_};
    } else {
      PageLabel label;
      const std::size_t faults = faults_.count();
      if (!read_label(label)) return false;
      out.push_back(label);
      if (index == known.size()) known.emplace_back();
      known[index] = {{start, p_}, label};
      if (faults_.count() != faults) known[index].text = "\n";  // to be noted
    }
    skip_blanks();
    if (at('}')) break;
    if (!at(',')) {
      return fail(p_, message("after the value of label ", out.back().name,
                              " stands ", here(), "; allowed: , and }"));
    }
    const char* const comma = p_++;
    skip_blanks();
    if (open_metrics_ && at('}'))
      note(comma, "OpenMetrics has no comma behind the last label");
  }
  ++p_;
  return true;
}

bool PageLineReader::read_label(PageLabel& out) {
  const char* const start = p_;
  p_ = skip(kInLabelName, start, end_);
  const std::string_view name(start, p_);
  if (name.empty() || is_digit(*start)) {
    p_ = start;
    return fail(start, message("a label's name stands here, not ", here(),
                               "; allowed: [a-zA-Z_][a-zA-Z0-9_]*"));
  }
  skip_blanks();
  if (!at('=')) {
    return fail(
        p_, message("after label ", name, " stands ", here(), "; allowed: ="));
  }
  ++p_;
  skip_blanks();
  if (!at('"')) {
    return fail(p_, message("the value of label ", name, " begins with ",
                            here(), "; allowed: \""));
  }
  const char* const quote = p_++;
  std::string_view value;
  if (!read_label_value(value)) {
    return fail(quote, message("the value of label ", name,
                               " has no closing quote on its line"));
  }
  out = {name, value};
  return true;
}

// Up to the closing quote, and past it.
bool PageLineReader::read_label_value(std::string_view& out) {
  const char* p = p_;
  bool escapes = false;
  for (; p != end_ && *p != '"'; ++p) {
    if (*p != '\\') continue;
    escapes = true;
    if (++p == end_) return false;
  }
  if (p == end_) return false;
  out = {p_, p};
  p_ = p + 1;
  if (escapes) out = unescaped(out, true);
  return true;
}

// Finds two of one name, too.
bool PageLineReader::sort_labels(std::vector<PageLabel>& labels,
                                 const char* where) {
  const auto is_late = [](const PageLabel& a, const PageLabel& b) {
    if (a.name.front() != b.name.front()) [[likely]] {
      return a.name.front() > b.name.front();
    }
    return a.name >= b.name;
  };
  auto wrong = std::ranges::adjacent_find(labels, is_late);
  if (wrong == labels.end()) return true;
  std::ranges::sort(labels, {}, &PageLabel::name);
  wrong = std::ranges::adjacent_find(labels, is_late);
  if (wrong == labels.end()) return true;
  return fail(where, message("label ", wrong->name,
                             " is given twice; allowed: each name once"));
}

bool PageLineReader::read_number(std::string_view what, double& out) {
  const char* const start = p_;
  const std::string_view text = token();
  if (parse_number(text, out)) return true;
  return fail(start, message("the ", what, " is ", excerpt(text),
                             "; allowed: a decimal number, NaN, +Inf, -Inf"));
}

bool PageLineReader::read_timestamp(std::optional<double>& out) {
  const char* const start = p_;
  if (open_metrics_) {
    out.emplace();
    if (read_number("timestamp", *out)) return true;
    return false;
  }
  const std::string_view text = token();
  std::int64_t milliseconds = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, milliseconds);
  if (read.ptr != end || read.ec != std::errc()) {
    return fail(start, message("the timestamp is ", excerpt(text),
                               "; allowed: whole milliseconds since 1970"));
  }
  out = static_cast<double>(milliseconds) / 1000.0;
  return true;
}

bool PageLineReader::read_exemplar(SampleLine::Exemplar& out) {
  constexpr std::size_t kLongestLabels = 128;
  const char* const start = p_++;
  separate();
  out.labels.clear();
  out.timestamp.reset();
  if (!at('{')) {
    return fail(start, message("behind # stands ", here(),
                               "; allowed: the labels of an exemplar, {}"));
  }
  if (!read_labels(out.labels, known_exemplar_labels_) ||
      !sort_labels(out.labels, start))
    return false;
  std::size_t characters = 0;  // not bytes: those that begin one
  const auto count = [&](std::string_view text) {
    characters += static_cast<std::size_t>(std::ranges::count_if(
        text, [](char c) { return (c & '\xC0') != '\x80'; }));
  };
  for (const PageLabel& label : out.labels) {
    count(label.name);
    count(label.value);
  }
  if (characters > kLongestLabels) {
    note(start,
         message("the exemplar's labels have ", std::to_string(characters),
                 " characters; allowed: 128"));
  }
  separate();
  if (!read_number("exemplar's value", out.value)) return false;
  if (p_ == end_) return true;
  separate();
  out.timestamp.emplace();
  if (!read_number("exemplar's timestamp", *out.timestamp)) return false;
  if (p_ == end_) return true;
  separate();
  return fail(p_, message("behind an exemplar the line ends, not ", here()));
}

bool PageLineReader::read_comment(std::string_view line, std::size_t number,
                                  CommentLine& out) {
  begin(line, number);
  out = {.line = number};
  skip_blanks();
  ++p_;  // the #
  separate();
  const char* const start = p_;
  const std::string_view keyword = token();
  if (keyword == "HELP") {
    out.kind = CommentLine::Kind::kHelp;
  } else if (keyword == "TYPE") {
    out.kind = CommentLine::Kind::kType;
  } else if (open_metrics_ && keyword == "UNIT") {
    out.kind = CommentLine::Kind::kUnit;
  } else if (open_metrics_ && keyword == "EOF" && p_ == end_) {
    out.kind = CommentLine::Kind::kEnd;
    return true;
  } else {
    if (open_metrics_) {
      note(start, message("a comment that begins with ", excerpt(keyword),
                          "; OpenMetrics allows: HELP, TYPE, UNIT, EOF"));
    }
    return true;
  }
  separate();
  const char* const name = p_;
  out.name = token();
  if (!is_metric_name(out.name)) {
    return fail(name, message(keyword, " is of ", excerpt(out.name),
                              "; allowed: [a-zA-Z_:][a-zA-Z0-9_:]*"));
  }
  if (p_ != end_ && out.kind == CommentLine::Kind::kHelp &&
      (*p_ == ' ' || !open_metrics_)) {
    ++p_;  // more blanks are the text's own
  } else if (p_ != end_) {
    separate();
  }
  out.text = {p_, end_};
  if (out.kind == CommentLine::Kind::kHelp) {
    if (out.text.find('\\') != std::string_view::npos)
      out.text = unescaped(out.text, open_metrics_);
  } else if (!open_metrics_) {
    out.text = token();
    skip_blanks();
    if (p_ != end_) note(p_, message("behind the type stands ", here()));
  }
  return true;
}

std::string_view PageLineReader::unescaped(std::string_view raw, bool quote) {
  char* const text = static_cast<char*>(storage_.allocate(raw.size(), 1));
  char* out = text;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\') {
      *out++ = raw[i];
      continue;
    }
    const char escaped = i + 1 < raw.size() ? raw[i + 1] : '\0';
    if (escaped == 'n' || escaped == '\\' || (quote && escaped == '"')) {
      *out++ = escaped == 'n' ? '\n' : escaped;
      ++i;
      continue;
    }
    note(raw.data() + i,
         message("the escape is ", excerpt(raw.substr(i, 2)),
                 "; allowed: ", quote ? R"(\\, \n and \")" : R"(\\ and \n)"));
    *out++ = '\\';
  }
  return {text, out};
}

}  // namespace vllm_metrics::inline v0
