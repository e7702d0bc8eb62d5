#include "src/otlp/settings.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "vllm_metrics/loggers/clock.h"
#include "vllm_metrics/loggers/log_sink.h"
#include "vllm_metrics/registry/labels.h"

namespace vllm_metrics::inline v0::otlp {
namespace {

absl::Status refuse(std::string_view name, std::string_view value,
                    std::string_view allowed) {
  return absl::InvalidArgumentError(
      fmt::format("{} = \"{}\" is not {}", name, value, allowed));
}

// What a variable says, and what it is called.
struct Variable {
  std::string name;
  std::string value;
};

class Environment {
 public:
  Environment(const Options& options, Signal signal)
      : look_up_(options.environment), signal_(signal) {}

  // A variable that is empty counts as unset, as OpenTelemetry says.
  std::optional<Variable> find(std::string_view name) const {
    std::string key = fmt::format("OTEL_{}", name);
    const char* const text =
        look_up_ ? look_up_(key.c_str()) : std::getenv(key.c_str());
    if (text == nullptr || *text == '\0') return std::nullopt;
    return Variable{std::move(key),
                    std::string(absl::StripAsciiWhitespace(text))};
  }
  // The one of this signal, else the general one.
  std::optional<Variable> find_exporter(std::string_view name) const {
    auto found = find(
        fmt::format("EXPORTER_OTLP_{}_{}",
                    signal_ == Signal::kMetrics ? "METRICS" : "TRACES", name));
    return found ? found : find(fmt::format("EXPORTER_OTLP_{}", name));
  }

 private:
  const std::function<const char*(const char*)>& look_up_;
  Signal signal_;
};

bool is_url(std::string_view text) {
  const bool is_plain =
      (text.starts_with("http://") || text.starts_with("https://")) &&
      std::ranges::all_of(text, [](char c) { return c > ' '; });
  if (!is_plain) return false;
  CURLU* const url = curl_url();
  const bool is_good =
      url != nullptr && curl_url_set(url, CURLUPART_URL,
                                     std::string(text).c_str(), 0) == CURLUE_OK;
  curl_url_cleanup(url);
  return is_good;
}

absl::Status check_url(std::string_view name, std::string_view value) {
  if (is_url(value)) return absl::OkStatus();
  return refuse(name, value, "an URL: http://host:port or https://host:port");
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

absl::StatusOr<Pairs> read_pairs(const Variable& variable, bool secret) {
  Pairs pairs;
  for (const std::string& part :
       std::vector<std::string>(absl::StrSplit(variable.value, ','))) {
    const std::string_view text{part};
    if (absl::StripAsciiWhitespace(part).empty()) continue;
    const auto at = text.find('=');
    const auto trimmed = [](std::string_view t) {
      return std::string(
          absl::StripAsciiWhitespace(absl::string_view(t.data(), t.size())));
    };
    const auto value = at == text.npos
                           ? std::nullopt
                           : decode_percent(trimmed(text.substr(at + 1)));
    const std::string name = trimmed(text.substr(0, at));
    if (name.empty() || !value)
      return refuse(variable.name, secret ? "..." : variable.value,
                    "a list of name=value with commas between, other "
                    "characters as %xx");
    pairs.emplace_back(name, *value);
  }
  return pairs;
}

// Which times a variable may set. A timeout of 0 is none, as OpenTelemetry
// says: here, a day.
enum class TimeKind { kInterval, kTimeout };

// A time: an option in seconds, a variable in milliseconds.
absl::Status read_seconds(std::string_view option_name,
                          const std::optional<double>& option,
                          const std::optional<Variable>& variable,
                          TimeKind kind, double& out) {
  constexpr double kMost = 86'400.0;
  if (option) {
    if (!(*option > 0.0 && *option <= kMost))
      return refuse(option_name, fmt::format("{}", *option),
                    "above 0 and up to 86400 seconds");
    out = *option;
  } else if (variable) {
    const bool may_be_zero = kind == TimeKind::kTimeout;
    std::int64_t milliseconds = 0;
    if (!absl::SimpleAtoi(variable->value, &milliseconds) ||
        milliseconds < (may_be_zero ? 0 : 1) || milliseconds > 86'400'000)
      return refuse(
          variable->name, variable->value,
          may_be_zero
              ? "a number of milliseconds, 1 to 86400000, or 0 for no limit"
              : "a number of milliseconds, 1 to 86400000");
    out = milliseconds == 0 ? kMost : static_cast<double>(milliseconds) / 1e3;
  }
  return absl::OkStatus();
}

absl::Status read_url(const Options& options, Signal signal,
                      const Environment& environment, Settings& out) {
  const bool metrics = signal == Signal::kMetrics;
  const auto& own =
      metrics ? options.metrics_endpoint : options.traces_endpoint;
  const std::string_view own_name =
      metrics ? "metrics_endpoint" : "traces_endpoint";
  std::string name{own_name};
  bool whole = true;
  if (own) {
    out.url = *own;
  } else if (options.endpoint) {
    name = "endpoint", out.url = *options.endpoint, whole = false;
  } else if (const auto variable =
                 environment.find(metrics ? "EXPORTER_OTLP_METRICS_ENDPOINT"
                                          : "EXPORTER_OTLP_TRACES_ENDPOINT")) {
    name = variable->name, out.url = variable->value;
  } else if (const auto general = environment.find("EXPORTER_OTLP_ENDPOINT")) {
    name = general->name, out.url = general->value, whole = false;
  } else {
    out.url = "http://localhost:4318", whole = false;
  }
  if (auto status = check_url(name, out.url); !status.ok()) return status;
  if (whole) return absl::OkStatus();
  if (!out.url.ends_with('/')) out.url += '/';
  out.url += metrics ? "v1/metrics" : "v1/traces";
  return absl::OkStatus();
}

// Whether it is this exporter that is wanted, and where it writes to.
void warn(const Options& options, std::string_view text) {
  const auto sink = options.log_sink != nullptr ? options.log_sink
                                                : LogSink::standard_error();
  try {
    if (sink->minimum_level() <= LogLevel::kWarning)
      sink->write(LogLevel::kWarning, Clock::system()->wall(),
                  LogSink::kNoEngine, text);
  } catch (...) {  // of the sink
  }
}

absl::Status read_exporter(const Options& options, Signal signal,
                           const Environment& environment, Settings& out) {
  const bool metrics = signal == Signal::kMetrics;
  const auto& file = metrics ? options.metrics_file : options.traces_file;
  const std::string_view file_name = metrics ? "metrics_file" : "traces_file";
  // Only `true` disables: the specification has every other value mean false,
  // with a warning.
  if (const auto off = environment.find("SDK_DISABLED")) {
    const std::string value = absl::AsciiStrToLower(off->value);
    out.disabled = value == "true";
    if (!out.disabled && value != "false")
      warn(options, fmt::format("OTLP: {} = \"{}\" is not true or false, and "
                                "counts as false.",
                                off->name, off->value));
  }
  out.file_max_bytes = options.file_max_bytes;
  if (file) {
    out.file = *file;
    if (out.file.empty() || out.file.find('\0') != out.file.npos)
      return refuse(file_name, out.file, "the path of a file");
    if (options.metrics_file == options.traces_file)
      return refuse(file_name, out.file,
                    "a file of its own: metrics_file and traces_file may not "
                    "be the same");
    if (options.transport != nullptr)
      return refuse(file_name, out.file,
                    "allowed together with a transport; choose one");
  } else if (const auto found = environment.find(metrics ? "METRICS_EXPORTER"
                                                         : "TRACES_EXPORTER")) {
    if (found->value == "none") {
      out.disabled = true;
    } else if (found->value == "otlp/stdout") {
      out.file = "/dev/stdout";
    } else if (found->value != "otlp") {
      return refuse(found->name, found->value, "otlp, otlp/stdout or none");
    }
  }
  out.disabled = options.disabled.value_or(out.disabled);
  return absl::OkStatus();
}

absl::Status read_headers(const Options& options,
                          const Environment& environment, Settings& out) {
  if (options.headers) {
    out.headers = *options.headers;
  } else if (const auto variable = environment.find_exporter("HEADERS")) {
    auto pairs = read_pairs(*variable, /*secret=*/true);
    if (!pairs.ok()) return pairs.status();
    out.headers = *std::move(pairs);
  }
  for (const auto& [name, value] : out.headers) {
    const bool good = !name.empty() && std::ranges::all_of(name, [](char c) {
      return c > ' ' && c < '\x7f' && c != ':';
    }) && value.find_first_of(std::string_view("\r\n\0", 3)) == value.npos;
    if (!good)
      return absl::InvalidArgumentError(fmt::format(
          "headers: the one named \"{}\" has a character that a header cannot "
          "have",
          name));
  }
  return absl::OkStatus();
}

// The name of a file that is there.
absl::Status read_file(std::string_view option_name,
                       const std::optional<std::string>& option,
                       const std::optional<Variable>& variable,
                       std::string& out) {
  if (!option && !variable) return absl::OkStatus();
  out = option ? *option : variable->value;
  if (out.empty() || ::access(out.c_str(), R_OK) == 0) return absl::OkStatus();
  return refuse(option ? option_name : std::string_view(variable->name), out,
                "a file that can be read");
}

absl::Status read_wire(const Options& options, const Environment& environment,
                       Settings& out) {
  if (options.compression) {
    out.compression = *options.compression;
  } else if (const auto found = environment.find_exporter("COMPRESSION")) {
    if (found->value == "gzip") {
      out.compression = Compression::kGzip;
    } else if (found->value != "none") {
      return refuse(found->name, found->value, "gzip or none");
    }
  }
  if (const auto found = environment.find_exporter("PROTOCOL");
      found && found->value != "http/protobuf")
    return refuse(found->name, found->value, "http/protobuf");

  auto status =
      read_file("ca_certificate", options.ca_certificate,
                environment.find_exporter("CERTIFICATE"), out.ca_certificate);
  if (status.ok())
    status = read_file("client_key", options.client_key,
                       environment.find_exporter("CLIENT_KEY"), out.client_key);
  if (status.ok())
    status = read_file("client_certificate", options.client_certificate,
                       environment.find_exporter("CLIENT_CERTIFICATE"),
                       out.client_certificate);
  if (!status.ok()) return status;
  if (!out.file.empty()) out.compression = Compression::kNone;
  return read_seconds("timeout", options.timeout,
                      environment.find_exporter("TIMEOUT"), TimeKind::kTimeout,
                      out.timeout);
}

void put(Pairs& pairs, const std::string& name, const std::string& value) {
  const auto at = std::ranges::find(pairs, name, &Pairs::value_type::first);
  if (at == pairs.end()) {
    pairs.emplace_back(name, value);
  } else {
    at->second = value;
  }
}

absl::Status read_resource(const Options& options,
                           const Environment& environment, Settings& out) {
  out.resource = {{"service.name", "unknown_service"}};
  if (const auto variable = environment.find("RESOURCE_ATTRIBUTES")) {
    auto pairs = read_pairs(*variable, /*secret=*/false);
    if (!pairs.ok()) return pairs.status();
    for (const auto& [name, value] : *pairs) put(out.resource, name, value);
  }
  if (const auto variable = environment.find("SERVICE_NAME"))
    put(out.resource, "service.name", variable->value);
  for (const auto& [name, value] : options.resource_attributes)
    put(out.resource, name, value);
  if (options.service_name)
    put(out.resource, "service.name", *options.service_name);
  // A message with any other text would be refused as a whole.
  for (auto& [name, value] : out.resource) {
    name = valid_utf8(name);
    value = valid_utf8(value);
  }
  return absl::OkStatus();
}

absl::Status read_metrics(const Options& options,
                          const Environment& environment, Settings& out) {
  auto status = read_seconds("export_interval", options.export_interval,
                             environment.find("METRIC_EXPORT_INTERVAL"),
                             TimeKind::kInterval, out.export_interval);
  if (status.ok())
    status = read_seconds("export_timeout", options.export_timeout,
                          environment.find("METRIC_EXPORT_TIMEOUT"),
                          TimeKind::kTimeout, out.export_timeout);
  if (!status.ok()) return status;

  out.gen_ai = options.gen_ai;
  if (out.gen_ai) {
    for (const auto& [name, value] :
         {std::pair("gen_ai.provider", &out.gen_ai->provider),
          std::pair("gen_ai.operation", &out.gen_ai->operation)}) {
      if (value->empty()) return refuse(name, *value, "a name");
      *value = valid_utf8(*value);
    }
  }
  if (const auto found = environment.find(
          "EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION")) {
    out.explicit_histograms = found->value == "explicit_bucket_histogram";
    if (!out.explicit_histograms &&
        found->value != "base2_exponential_bucket_histogram")
      return refuse(found->name, found->value,
                    "explicit_bucket_histogram or "
                    "base2_exponential_bucket_histogram");
  }
  if (options.temporality) {
    out.temporality = *options.temporality;
  } else if (const auto found = environment.find(
                 "EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE")) {
    const std::string value = absl::AsciiStrToLower(found->value);
    if (value == "delta" || value == "lowmemory") {
      out.temporality = Temporality::kDelta;
    } else if (value != "cumulative") {
      return refuse(found->name, found->value,
                    "cumulative, delta or lowmemory");
    }
  }
  return absl::OkStatus();
}

absl::Status read_sampler(const Options& options,
                          const Environment& environment, Settings& out) {
  const auto found = environment.find("TRACES_SAMPLER");
  if (options.root_ratio) {
    out.root_ratio = *options.root_ratio;
    if (out.root_ratio >= 0.0 && out.root_ratio <= 1.0) return absl::OkStatus();
    return refuse("root_ratio", fmt::format("{}", out.root_ratio), "0 to 1");
  }
  if (!found) return absl::OkStatus();
  std::string_view sampler{found->value};
  constexpr std::string_view kParent = "parentbased_";
  out.parent_based = sampler.starts_with(kParent);
  if (out.parent_based) sampler.remove_prefix(kParent.size());
  if (sampler == "always_on") {
    out.root_ratio = 1.0;
  } else if (sampler == "always_off") {
    out.root_ratio = 0.0;
  } else if (sampler == "traceidratio") {
    const auto ratio = environment.find("TRACES_SAMPLER_ARG");
    out.root_ratio = 1.0;
    if (ratio && (!absl::SimpleAtod(ratio->value, &out.root_ratio) ||
                  !(out.root_ratio >= 0.0 && out.root_ratio <= 1.0)))
      return refuse(ratio->name, ratio->value, "0 to 1");
  } else {
    return refuse(found->name, found->value,
                  "always_on, always_off or traceidratio, each with or without "
                  "parentbased_ before it");
  }
  return absl::OkStatus();
}

absl::Status read_size(std::string_view option_name,
                       const std::optional<std::size_t>& option,
                       const std::optional<Variable>& variable,
                       std::size_t& out) {
  constexpr std::size_t kMost = 65'536;
  std::string name{option_name};
  std::string text;
  if (option) {
    out = *option;
    text = std::to_string(out);
  } else if (variable) {
    name = variable->name;
    text = variable->value;
    if (!absl::SimpleAtoi(text, &out)) out = 0;
  }
  if (out >= 1 && out <= kMost) return absl::OkStatus();
  return refuse(name, text, "a number, 1 to 65536");
}

absl::Status read_spans(const Options& options, const Environment& environment,
                        Settings& out) {
  auto status = read_sampler(options, environment, out);
  if (status.ok())
    status = read_seconds("span_delay", options.span_delay,
                          environment.find("BSP_SCHEDULE_DELAY"),
                          TimeKind::kInterval, out.span_delay);
  if (status.ok())
    status = read_seconds("span_export_timeout", options.span_export_timeout,
                          environment.find("BSP_EXPORT_TIMEOUT"),
                          TimeKind::kTimeout, out.span_export_timeout);
  if (status.ok())
    status = read_size("span_queue", options.span_queue,
                       environment.find("BSP_MAX_QUEUE_SIZE"), out.span_queue);
  if (status.ok())
    status = read_size("span_batch", options.span_batch,
                       environment.find("BSP_MAX_EXPORT_BATCH_SIZE"),
                       out.span_batch);
  return status;
}

}  // namespace

absl::StatusOr<Settings> resolve(const Options& options, Signal signal) {
  const Environment environment(options, signal);
  Settings settings;
  auto status = read_exporter(options, signal, environment, settings);
  if (status.ok() && settings.disabled) return settings;
  if (status.ok()) status = read_url(options, signal, environment, settings);
  if (status.ok()) status = read_headers(options, environment, settings);
  if (status.ok()) status = read_wire(options, environment, settings);
  if (status.ok()) status = read_resource(options, environment, settings);
  if (status.ok() && signal == Signal::kMetrics)
    status = read_metrics(options, environment, settings);
  if (status.ok() && signal == Signal::kTraces)
    status = read_spans(options, environment, settings);
  if (!status.ok()) return status;
  return settings;
}

}  // namespace vllm_metrics::inline v0::otlp
