#include "vllm_metrics/exposition/negotiation.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "vllm_metrics/exposition/open_metrics.h"
#include "vllm_metrics/exposition/text_format.h"

namespace vllm_metrics::inline v0 {
namespace {

struct Parameter {
  std::string_view name;
  std::string_view value;
};

// A format, and the parameters that tell it from others of its media type.
struct Row {
  WireFormat format;
  std::string_view content_type;
  std::string_view media_type;
  std::array<Parameter, 2> parameters;
  // Only for clients that name all of the parameters.
  bool only_if_named;
};

constexpr Row kRows[] = {
    {WireFormat::kText,
     TextFormat::kContentType,
     "text/plain",
     {{{"version", "0.0.4"}, {}}},
     false},
    {WireFormat::kText1,
     "text/plain; version=1.0.0; charset=utf-8",
     "text/plain",
     {{{"version", "1.0.0"}, {}}},
     true},
    {WireFormat::kOpenMetrics,
     OpenMetrics::kContentType,
     "application/openmetrics-text",
     {{{"version", "1.0.0"}, {}}},
     false},
    {WireFormat::kProtobuf,
     "application/vnd.google.protobuf; "
     "proto=io.prometheus.client.MetricFamily; encoding=delimited",
     "application/vnd.google.protobuf",
     {{{"proto", "io.prometheus.client.MetricFamily"},
       {"encoding", "delimited"}}},
     true},
};

constexpr std::size_t kMaxRanges = 64;
constexpr int kMaxQuality = 1000;

char lower(char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; }

bool same_text(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, lower, lower);
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t";
  text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
  return text.substr(0, text.find_last_not_of(kBlank) + 1);
}

// Takes what stands before the next `separator` off the front of `text`. A
// separator within quotes is none.
std::string_view take_part(std::string_view& text, char separator) {
  bool quoted = false;
  std::size_t end = 0;
  for (; end < text.size(); ++end) {
    if (quoted && text[end] == '\\') {
      ++end;
    } else if (text[end] == '"') {
      quoted = !quoted;
    } else if (!quoted && text[end] == separator) {
      break;
    }
  }
  const auto part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return trimmed(part);
}

Parameter parameter(std::string_view text) {
  const auto equals = std::min(text.find('='), text.size());
  std::string_view value =
      trimmed(text.substr(std::min(equals + 1, text.size())));
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
    value = value.substr(1, value.size() - 2);
  }
  return {trimmed(text.substr(0, equals)), value};
}

// Thousandths; nothing when it is no quality.
std::optional<int> quality(std::string_view text) {
  if (text.empty() || text.size() > 5 || (text[0] != '0' && text[0] != '1') ||
      (text.size() > 1 && text[1] != '.')) {
    return std::nullopt;
  }
  int value = (text[0] - '0') * kMaxQuality;
  int digit_value = 100;
  for (const char c : text.substr(std::min<std::size_t>(2, text.size()))) {
    if (c < '0' || c > '9') return std::nullopt;
    value += (c - '0') * digit_value;
    digit_value /= 10;
  }
  return value <= kMaxQuality ? std::optional(value) : std::nullopt;
}

// One element of a header: a media range or a coding, and what follows it.
struct Range {
  std::string_view name;
  std::string_view rest;  // parameters

  // Nothing when the element has to be passed over.
  std::optional<int> quality() const {
    std::string_view left = rest;
    while (!left.empty()) {
      const Parameter given = parameter(take_part(left, ';'));
      if (same_text(given.name, "q")) return v0::quality(given.value);
    }
    return kMaxQuality;
  }
};

Range take_range(std::string_view& header) {
  std::string_view element = take_part(header, ',');
  const auto name = take_part(element, ';');
  return {name, element};
}

// How precisely `range` names the row: 0 for not at all, 1 for `*/*`.
int precision(const Range& range, const Row& row) {
  if (range.name == "*/*") return row.only_if_named ? 0 : 1;
  const auto type = row.media_type.substr(0, row.media_type.find('/') + 1);
  if (range.name.ends_with("/*") &&
      same_text(range.name.substr(0, range.name.size() - 1), type)) {
    return row.only_if_named ? 0 : 2;
  }
  if (!same_text(range.name, row.media_type)) return 0;
  int named = 0;
  std::string_view left = range.rest;
  while (!left.empty()) {
    const Parameter given = parameter(take_part(left, ';'));
    for (const Parameter& own : row.parameters) {
      if (own.name.empty() || !same_text(given.name, own.name)) continue;
      if (!same_text(given.value, own.value)) return 0;
      ++named;
    }
  }
  const auto all = std::ranges::count_if(
      row.parameters, [](const Parameter& p) { return !p.name.empty(); });
  return row.only_if_named && named < all ? 0 : 3 + named;
}

// What a header says of one row: its most precise range counts.
struct Verdict {
  int quality = 0;
  int precision = 0;
  std::size_t place = 0;

  bool better_than(const Verdict& other) const {
    if (quality != other.quality) return quality > other.quality;
    if (precision != other.precision) return precision > other.precision;
    return place < other.place;
  }
};

Verdict verdict_on(const Row& row, std::string_view accept) {
  Verdict verdict;
  for (std::size_t place = 0; place < kMaxRanges && !accept.empty(); ++place) {
    const Range range = take_range(accept);
    const int named = precision(range, row);
    if (named <= verdict.precision) continue;
    if (const auto q = range.quality()) verdict = {*q, named, place};
  }
  return verdict;
}

}  // namespace

WireFormatChoice choose_wire_format(std::string_view accept,
                                    WireFormatsOffered offered) {
  const Row* chosen = &kRows[0];
  Verdict best;
  for (const Row& row : kRows) {
    if (row.format == WireFormat::kProtobuf && !offered.protobuf) continue;
    const Verdict verdict = verdict_on(row, accept);
    if (verdict.quality > 0 && verdict.better_than(best)) {
      chosen = &row;
      best = verdict;
    }
  }
  return {chosen->format, chosen->content_type};
}

bool accepts_gzip(std::string_view accept_encoding) {
  std::optional<int> gzip, identity, any;
  for (std::size_t place = 0; place < kMaxRanges && !accept_encoding.empty();
       ++place) {
    const Range coding = take_range(accept_encoding);
    const auto q = coding.quality();
    if (!q) continue;
    if (same_text(coding.name, "gzip") || same_text(coding.name, "x-gzip")) {
      gzip = std::max(gzip.value_or(0), *q);
    } else if (same_text(coding.name, "identity")) {
      identity = q;
    } else if (coding.name == "*") {
      any = q;
    }
  }
  const int wanted = gzip.value_or(any.value_or(0));
  return wanted > 0 && wanted >= identity.value_or(0);
}

}  // namespace vllm_metrics::inline v0
