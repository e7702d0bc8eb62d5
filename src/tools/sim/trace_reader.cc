#include "src/tools/sim/trace_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "src/tools/sim/random.h"
#include "src/tools/sim/workload.h"

namespace vllm_metrics::sim {
namespace {

constexpr std::int64_t kHashedTokens = 512;  // tokens per entry of hash_ids
constexpr std::int64_t kMaxTokens = INT32_MAX;
constexpr double kMaxMilliseconds = 1e12;  // keeps virtual time exact
constexpr std::string_view kCsvHeader =
    "TIMESTAMP,ContextTokens,GeneratedTokens";

struct Position {
  std::string_view file;
  std::int64_t line;
};

absl::Status refuse(const Position& at, std::string_view what) {
  return absl::InvalidArgumentError(
      fmt::format("{}:{}: {}", at.file, at.line, what));
}

absl::Status refuse_field(const Position& at, std::string_view field,
                          std::string_view value, std::string_view allowed) {
  return refuse(at,
                fmt::format("{} is {}; allowed: {}", field, value, allowed));
}

// As much of a value as a message needs.
std::string shortened(std::string_view value) {
  constexpr std::size_t kEnough = 60;
  if (value.size() <= kEnough) return std::string(value);
  return fmt::format("{}...", value.substr(0, kEnough));
}

std::string quoted(std::string_view value) {
  return fmt::format("\"{}\"", shortened(value));
}

std::string token_range(std::int64_t min) {
  return fmt::format("a whole number from {} to {}", min, kMaxTokens);
}

// --- JSON Lines ----------------------------------------------------------

using Json = nlohmann::json;

std::string text_of(const Json& object, const char* field) {
  const auto found = object.find(field);
  if (found == object.end()) return "missing";
  return shortened(found->dump(-1, ' ', true, Json::error_handler_t::replace));
}

absl::Status read_tokens(const Position& at, const Json& object,
                         const char* field, std::int64_t min,
                         std::int64_t& tokens) {
  const auto found = object.find(field);
  const bool whole = found != object.end() && found->is_number_integer();
  // An unsigned number past int64 would wrap below 0: refused as well.
  if (!whole || found->get<std::int64_t>() < min ||
      found->get<std::int64_t>() > kMaxTokens) {
    return refuse_field(at, field, text_of(object, field), token_range(min));
  }
  tokens = found->get<std::int64_t>();
  return absl::OkStatus();
}

absl::Status read_hash_ids(const Position& at, const Json& object,
                           RequestSpec& spec) {
  const auto found = object.find("hash_ids");
  if (found == object.end()) return absl::OkStatus();
  const auto chunks = static_cast<std::size_t>(
      (spec.prompt_tokens + kHashedTokens - 1) / kHashedTokens);
  const bool fits = found->is_array() && found->size() <= chunks &&
                    std::all_of(found->begin(), found->end(), [](auto& id) {
                      return id.is_number_integer();
                    });
  if (!fits) {
    return refuse_field(
        at, "hash_ids", text_of(object, "hash_ids"),
        fmt::format("a list of whole numbers, one for each {} tokens of "
                    "input_length, here at most {}",
                    kHashedTokens, chunks));
  }
  spec.prefix.reserve(found->size());
  std::uint64_t hash = 0;
  for (const Json& id : *found) {
    hash = chain(hash, id.get<std::uint64_t>());
    spec.prefix.push_back(hash);
  }
  spec.chunk_tokens = kHashedTokens;
  return absl::OkStatus();
}

absl::StatusOr<RequestSpec> read_json_line(const Position& at,
                                           std::string_view line) {
  const Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) {
    return refuse(at,
                  "not a JSON object; allowed: {\"timestamp\": ..., "
                  "\"input_length\": ..., \"output_length\": ..., "
                  "\"hash_ids\": [...]}");
  }
  RequestSpec spec;
  const auto time = object.find("timestamp");
  const double milliseconds =
      time != object.end() && time->is_number() ? time->get<double>() : -1.0;
  if (!(milliseconds >= 0.0 && milliseconds <= kMaxMilliseconds)) {
    return refuse_field(
        at, "timestamp", text_of(object, "timestamp"),
        fmt::format("milliseconds, a number from 0 to {:g}", kMaxMilliseconds));
  }
  spec.arrival = to_ticks(milliseconds / 1e3);
  absl::Status status =
      read_tokens(at, object, "input_length", 1, spec.prompt_tokens);
  if (status.ok()) {
    status = read_tokens(at, object, "output_length", 0, spec.output_tokens);
  }
  if (status.ok()) status = read_hash_ids(at, object, spec);
  if (!status.ok()) return status;
  return spec;
}

// --- CSV -----------------------------------------------------------------

// Takes `digits` digits off the front of `text`.
std::optional<int> take_digits(std::string_view& text, std::size_t digits) {
  if (text.size() < digits) return std::nullopt;
  int value = 0;
  const char* end = text.data() + digits;
  const auto [parsed, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || parsed != end || value < 0) return std::nullopt;
  text.remove_prefix(digits);
  return value;
}

// "2023-11-16 18:17:03.9799600" as ticks since 1970. Any number of decimals,
// and the UTC of newer traces, "+00:00" or "Z", behind it.
std::optional<Ticks> parse_timestamp(std::string_view text) {
  constexpr std::string_view kSeparators = "-- ::";
  constexpr std::size_t kDigits[] = {4, 2, 2, 2, 2, 2};
  int parts[6] = {};
  for (std::size_t i = 0; i < 6; ++i) {
    if (i > 0) {
      if (text.empty() || text[0] != kSeparators[i - 1]) return std::nullopt;
      text.remove_prefix(1);
    }
    const auto part = take_digits(text, kDigits[i]);
    if (!part.has_value()) return std::nullopt;
    parts[i] = *part;
  }
  double fraction = 0.0;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    double place = 0.1;
    if (text.empty()) return std::nullopt;
    for (; !text.empty() && text[0] >= '0' && text[0] <= '9'; place /= 10.0) {
      fraction += place * (text[0] - '0');
      text.remove_prefix(1);
    }
  }
  if (!text.empty() && text != "Z" && text != "+00:00") return std::nullopt;

  using namespace std::chrono;
  const year_month_day date{year{parts[0]},
                            month{static_cast<unsigned>(parts[1])},
                            day{static_cast<unsigned>(parts[2])}};
  if (!date.ok() || parts[0] < 1970 || parts[3] > 23 || parts[4] > 59 ||
      parts[5] > 59) {
    return std::nullopt;
  }
  const seconds since_1970 = sys_days(date).time_since_epoch() +
                             hours(parts[3]) + minutes(parts[4]) +
                             seconds(parts[5]);
  return since_1970.count() * kTicksPerSecond + to_ticks(fraction);
}

absl::Status parse_tokens(const Position& at, std::string_view field,
                          std::string_view text, std::int64_t min,
                          std::int64_t& tokens) {
  const char* end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, tokens);
  if (error != std::errc() || parsed != end || tokens < min ||
      tokens > kMaxTokens) {
    return refuse_field(at, field, quoted(text), token_range(min));
  }
  return absl::OkStatus();
}

absl::StatusOr<RequestSpec> read_csv_line(const Position& at,
                                          std::string_view line) {
  const std::size_t first = line.find(',');
  const std::size_t second = line.find(',', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) {
    return refuse(at, fmt::format("{} has not the three columns {}",
                                  quoted(line), kCsvHeader));
  }
  RequestSpec spec;
  const std::string_view time = line.substr(0, first);
  const auto arrival = parse_timestamp(time);
  if (!arrival.has_value()) {
    return refuse_field(at, "TIMESTAMP", quoted(time),
                        "YYYY-MM-DD HH:MM:SS.fraction, 1970 or later");
  }
  spec.arrival = *arrival;
  absl::Status status = parse_tokens(at, "ContextTokens",
                                     line.substr(first + 1, second - first - 1),
                                     1, spec.prompt_tokens);
  if (status.ok()) {
    status = parse_tokens(at, "GeneratedTokens", line.substr(second + 1), 0,
                          spec.output_tokens);
  }
  if (!status.ok()) return status;
  return spec;
}

// --- Either --------------------------------------------------------------

// The next line with something on it, without line end; false at the end.
bool next_line(std::istream& in, std::string& line, std::int64_t& number) {
  while (std::getline(in, line)) {
    if (++number == 1 && line.starts_with("\xef\xbb\xbf")) line.erase(0, 3);
    const std::size_t last = line.find_last_not_of(" \t\r");
    line.erase(last + 1);
    if (!line.empty()) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<Trace> read_trace(std::istream& in, std::string_view name) {
  Trace trace;
  std::string line;
  Position at{name, 0};
  bool more = next_line(in, line, at.line);
  const bool csv = line == kCsvHeader;
  if (csv) {
    more = next_line(in, line, at.line);
  } else if (more && line[line.find_first_not_of(" \t")] != '{') {
    return refuse(at, fmt::format("begins neither with a JSON object nor with "
                                  "the header {}",
                                  kCsvHeader));
  }
  for (; more; more = next_line(in, line, at.line)) {
    auto spec = csv ? read_csv_line(at, line) : read_json_line(at, line);
    if (!spec.ok()) return spec.status();
    spec->output_tokens = std::max<std::int64_t>(1, spec->output_tokens);
    trace.requests.push_back(*std::move(spec));
  }
  if (trace.requests.empty()) {
    return absl::InvalidArgumentError(
        fmt::format("{}: no requests in it", name));
  }
  std::stable_sort(trace.requests.begin(), trace.requests.end(),
                   [](const RequestSpec& a, const RequestSpec& b) {
                     return a.arrival < b.arrival;
                   });
  trace.epoch = csv ? trace.requests.front().arrival : Workload::kDefaultEpoch;
  if (csv) {
    for (RequestSpec& spec : trace.requests) spec.arrival -= trace.epoch;
  }
  return trace;
}

absl::StatusOr<Trace> read_trace(const std::string& path) {
  std::ifstream in(path);
  if (!in) {
    return absl::NotFoundError(
        fmt::format("{}: {}", path, std::strerror(errno)));
  }
  auto trace = read_trace(in, path);
  if (in.bad()) {
    return absl::NotFoundError(fmt::format("{}: cannot be read", path));
  }
  return trace;
}

}  // namespace vllm_metrics::sim
