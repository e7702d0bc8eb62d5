#include "src/otlp/environment.h"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "vllm_metrics/loggers/clock.h"
#include "vllm_metrics/loggers/log_sink.h"

namespace vllm_metrics::inline v0::otlp {
namespace {

std::string trimmed(std::string_view text) {
  return std::string(
      absl::StripAsciiWhitespace(absl::string_view(text.data(), text.size())));
}

// %xx by RFC 3986; nothing for a % without two digits.
std::optional<std::string> decode_percent(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    std::size_t byte = 0;
    for (int digit = 0; digit < 2; ++digit) {
      if (++i == text.size()) return std::nullopt;
      const auto place = kDigits.find(
          absl::ascii_tolower(static_cast<unsigned char>(text[i])));
      if (place == kDigits.npos) return std::nullopt;
      byte = byte * 16 + place;
    }
    out += static_cast<char>(byte);
  }
  return out;
}

}  // namespace

std::string Variable::lower() const { return absl::AsciiStrToLower(value); }

std::optional<Variable> Environment::find(std::string_view name) const {
  std::string key = fmt::format("OTEL_{}", name);
  const char* const text = options_.environment
                               ? options_.environment(key.c_str())
                               : std::getenv(key.c_str());
  if (text == nullptr) return std::nullopt;
  std::string value = trimmed(text);
  if (value.empty()) return std::nullopt;
  return Variable{std::move(key), std::move(value)};
}

std::optional<Variable> Environment::find_exporter(
    std::string_view name) const {
  auto found = find(
      fmt::format("EXPORTER_OTLP_{}_{}",
                  signal_ == Signal::kMetrics ? "METRICS" : "TRACES", name));
  return found ? found : find(fmt::format("EXPORTER_OTLP_{}", name));
}

void Environment::warn(std::string_view text) const {
  const auto sink = options_.log_sink != nullptr ? options_.log_sink
                                                 : LogSink::standard_error();
  try {
    if (sink->minimum_level() <= LogLevel::kWarning)
      sink->write(LogLevel::kWarning, Clock::system()->wall(),
                  LogSink::kNoEngine, text);
  } catch (...) {  // of the sink
  }
}

void Environment::ignore(const Variable& variable,
                         std::string_view allowed) const {
  warn(fmt::format("OTLP: {} = \"{}\" is not {}, and is ignored.",
                   variable.name, variable.value, allowed));
}

std::optional<Pairs> read_pairs(std::string_view list, Names names) {
  Pairs pairs;
  for (const std::string& part : std::vector<std::string>(
           absl::StrSplit(absl::string_view(list.data(), list.size()), ','))) {
    const std::string_view text{part};
    if (trimmed(text).empty()) continue;
    const auto at = text.find('=');
    if (at == text.npos) return std::nullopt;
    std::optional<std::string> name = trimmed(text.substr(0, at));
    if (names == Names::kEncoded) name = decode_percent(*name);
    auto value = decode_percent(trimmed(text.substr(at + 1)));
    if (!name || name->empty() || !value) return std::nullopt;
    pairs.emplace_back(*std::move(name), *std::move(value));
  }
  return pairs;
}

}  // namespace vllm_metrics::inline v0::otlp
