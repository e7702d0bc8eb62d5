#include "src/otlp/answer_reader.h"

#include <curl/curl.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

namespace vllm_metrics::inline v0::otlp {
namespace {

constexpr std::size_t kMostHead = 64 * 1024;
constexpr std::size_t kMostBody = 64 * 1024;

std::string_view trimmed(std::string_view text) {
  const auto left = absl::StripAsciiWhitespace({text.data(), text.size()});
  return {left.data(), left.size()};
}

bool is(std::string_view name, absl::string_view lower) {
  return absl::EqualsIgnoreCase({name.data(), name.size()}, lower);
}

// `HTTP/1.1 503 Service Unavailable`; 0 for what is none.
int status_of(std::string_view line) {
  const auto at = line.find(' ');
  if (!line.starts_with("HTTP/") || at == line.npos) return 0;
  const std::string_view code = line.substr(at + 1, 3);
  const bool is_code =
      code.size() == 3 && code[0] >= '1' && code[0] <= '5' &&
      std::ranges::all_of(code, [](char c) { return c >= '0' && c <= '9'; });
  return is_code ? (code[0] - '0') * 100 + (code[1] - '0') * 10 + code[2] - '0'
                 : 0;
}

// Seconds from `now`, of a number of them or of a date; nothing for what lies
// behind us or is neither.
std::optional<double> read_retry_after(std::string_view value, double now) {
  double seconds = 0.0;
  const bool is_number =
      !value.empty() &&
      std::ranges::all_of(value, [](char c) { return c >= '0' && c <= '9'; });
  if (is_number) {
    if (!absl::SimpleAtod({value.data(), value.size()}, &seconds))
      return std::nullopt;
  } else {
    const time_t date = curl_getdate(std::string(value).c_str(), nullptr);
    if (date == -1) return std::nullopt;
    seconds = static_cast<double>(date) - now;
  }
  return seconds > 0.0 ? std::optional(seconds) : std::nullopt;
}

}  // namespace

void AnswerReader::read_field(std::string_view name, std::string_view value) {
  if (is(name, "retry-after"))
    response_.retry_after = read_retry_after(value, now_);
  if (is(name, "content-type")) response_.content_type = value;
}

bool AnswerReader::take_head(std::string_view line) {
  head_size_ += line.size();
  if (head_size_ > kMostHead) return false;
  if (has_head()) return true;  // behind the body; says nothing to us
  line = trimmed(line);
  if (line.empty()) {
    constexpr int kFirstFinal = 200;
    if (response_.status >= kFirstFinal) state_ = State::kHasHead;
  } else if (state_ == State::kNothing || line.starts_with("HTTP/")) {
    response_ = {.status = status_of(line)};
    state_ = State::kInHead;
  } else if (const auto colon = line.find(':'); colon != line.npos) {
    read_field(line.substr(0, colon), trimmed(line.substr(colon + 1)));
  }
  return true;
}

bool AnswerReader::take_body(std::string_view bytes) {
  const std::size_t room = kMostBody - response_.body.size();
  response_.body += bytes.substr(0, room);
  return bytes.size() <= room;
}

Response AnswerReader::take() {
  if (!has_head()) return {};
  return std::move(response_);
}

}  // namespace vllm_metrics::inline v0::otlp
