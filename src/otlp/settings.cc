#include "src/otlp/settings.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "src/otlp/environment.h"
#include "src/otlp/instance_id.h"
#include "vllm_metrics/registry/labels.h"

namespace vllm_metrics::inline v0::otlp {
namespace {

absl::Status refuse(std::string_view name, std::string_view value,
                    std::string_view allowed) {
  return absl::InvalidArgumentError(
      fmt::format("{} = \"{}\" is not {}", name, value, allowed));
}

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

// Which times a variable may set. A timeout of 0 is none, as OpenTelemetry
// says: here, a day.
enum class TimeKind { kInterval, kTimeout };

// A time: an option in seconds, a variable in milliseconds.
absl::Status read_seconds(const Environment& environment,
                          std::string_view option_name,
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
        milliseconds < (may_be_zero ? 0 : 1) || milliseconds > 86'400'000) {
      environment.ignore(
          *variable,
          may_be_zero
              ? "a number of milliseconds, 1 to 86400000, or 0 for no limit"
              : "a number of milliseconds, 1 to 86400000");
      return absl::OkStatus();
    }
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
  // For a transport of the engine's own it is a name, and may be no URL.
  if (auto status = check_url(name, out.url);
      !status.ok() && options.transport == nullptr)
    return status;
  if (whole) return absl::OkStatus();
  const auto path_end = std::min(out.url.find_first_of("?#"), out.url.size());
  const bool has_slash = path_end > 0 && out.url[path_end - 1] == '/';
  out.url.insert(path_end, fmt::format("{}v1/{}", has_slash ? "" : "/",
                                       metrics ? "metrics" : "traces"));
  return absl::OkStatus();
}

// Whether it is this exporter that is wanted, and where it writes to.
absl::Status read_exporter(const Options& options, Signal signal,
                           const Environment& environment, Settings& out) {
  const bool metrics = signal == Signal::kMetrics;
  const auto& file = metrics ? options.metrics_file : options.traces_file;
  const std::string_view file_name = metrics ? "metrics_file" : "traces_file";
  // Only `true` disables: the specification has every other value mean false,
  // with a warning.
  if (const auto off = environment.find("SDK_DISABLED")) {
    const std::string value = off->lower();
    out.disabled = value == "true";
    if (!out.disabled && value != "false")
      environment.warn(
          fmt::format("OTLP: {} = \"{}\" is not true or false, and "
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
    const std::string value = found->lower();
    if (value == "none") {
      out.disabled = true;
    } else if (value == "otlp/stdout") {
      if (options.transport == nullptr) out.file = "/dev/stdout";
    } else if (value != "otlp") {
      environment.ignore(*found, "otlp, otlp/stdout or none");
    }
  }
  out.disabled = options.disabled.value_or(out.disabled);
  return absl::OkStatus();
}

constexpr std::string_view kList =
    "a list of name=value with commas between, other characters as %xx";

absl::Status read_headers(const Options& options,
                          const Environment& environment, Settings& out) {
  if (options.headers) {
    out.headers = *options.headers;
  } else if (const auto variable = environment.find_exporter("HEADERS")) {
    auto pairs = read_pairs(variable->value, Names::kPlain);
    if (!pairs) return refuse(variable->name, "...", kList);
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
    if (found->lower() == "gzip") {
      out.compression = Compression::kGzip;
    } else if (found->lower() != "none") {
      environment.ignore(*found, "gzip or none");
    }
  }
  if (options.transport != nullptr) return absl::OkStatus();
  if (const auto found = environment.find_exporter("PROTOCOL");
      found && found->lower() != "http/protobuf")
    environment.ignore(*found, "http/protobuf");

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
  return status;
}

// What a file has no use for is not looked at.
absl::Status read_http(const Options& options, Signal signal,
                       const Environment& environment, Settings& out) {
  if (!out.file.empty()) return absl::OkStatus();
  auto status = read_url(options, signal, environment, out);
  if (status.ok()) status = read_headers(options, environment, out);
  if (status.ok()) status = read_wire(options, environment, out);
  return status;
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
  // Else two processes of one service would write one stream.
  if (std::string id = instance_id(); !id.empty())
    out.resource.emplace_back("service.instance.id", std::move(id));
  if (const auto variable = environment.find("RESOURCE_ATTRIBUTES")) {
    const auto pairs = read_pairs(variable->value, Names::kEncoded);
    if (!pairs) environment.ignore(*variable, kList);
    for (const auto& [name, value] : pairs.value_or(Pairs{}))
      put(out.resource, name, value);
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

// Spans have the two names in any case.
absl::Status read_gen_ai(const Options& options, Signal signal, Settings& out) {
  out.gen_ai = options.gen_ai;
  if (signal == Signal::kTraces && !out.gen_ai) out.gen_ai.emplace();
  if (!out.gen_ai) return absl::OkStatus();
  for (const auto& [name, value] :
       {std::pair("gen_ai.provider", &out.gen_ai->provider),
        std::pair("gen_ai.operation", &out.gen_ai->operation)}) {
    if (value->empty()) return refuse(name, *value, "a name");
    *value = valid_utf8(*value);
  }
  return absl::OkStatus();
}

absl::Status read_metrics(const Options& options,
                          const Environment& environment, Settings& out) {
  auto status =
      read_seconds(environment, "export_interval", options.export_interval,
                   environment.find("METRIC_EXPORT_INTERVAL"),
                   TimeKind::kInterval, out.export_interval);
  if (status.ok())
    status = read_seconds(environment, "export_timeout", options.export_timeout,
                          environment.find("METRIC_EXPORT_TIMEOUT"),
                          TimeKind::kTimeout, out.export_timeout);
  if (!status.ok()) return status;

  if (const auto found = environment.find(
          "EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION")) {
    out.explicit_histograms = found->lower() == "explicit_bucket_histogram";
    if (!out.explicit_histograms &&
        found->lower() != "base2_exponential_bucket_histogram")
      environment.ignore(*found,
                         "explicit_bucket_histogram or "
                         "base2_exponential_bucket_histogram");
  }
  if (options.temporality) {
    out.temporality = *options.temporality;
  } else if (const auto found = environment.find(
                 "EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE")) {
    const std::string value = found->lower();
    if (value == "delta" || value == "lowmemory") {
      out.temporality = Temporality::kDelta;
    } else if (value != "cumulative") {
      environment.ignore(*found, "cumulative, delta or lowmemory");
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
  const std::string value = found->lower();
  std::string_view sampler{value};
  constexpr std::string_view kParent = "parentbased_";
  const bool parent_based = sampler.starts_with(kParent);
  if (parent_based) sampler.remove_prefix(kParent.size());
  double ratio = 1.0;
  if (sampler == "always_off") {
    ratio = 0.0;
  } else if (sampler == "traceidratio") {
    const auto argument = environment.find("TRACES_SAMPLER_ARG");
    if (argument && (!absl::SimpleAtod(argument->value, &ratio) ||
                     !(ratio >= 0.0 && ratio <= 1.0))) {
      environment.ignore(*argument, "0 to 1");
      ratio = 1.0;
    }
  } else if (sampler != "always_on") {
    environment.ignore(*found,
                       "always_on, always_off or traceidratio, each with or "
                       "without parentbased_ before it");
    return absl::OkStatus();
  }
  out.parent_based = parent_based;
  out.root_ratio = ratio;
  return absl::OkStatus();
}

absl::Status read_size(const Environment& environment,
                       std::string_view option_name,
                       const std::optional<std::size_t>& option,
                       const std::optional<Variable>& variable,
                       std::size_t& out) {
  constexpr std::string_view kAllowed = "a number, 1 to 65536";
  const auto is_allowed = [](std::size_t size) {
    return size >= 1 && size <= 65'536;
  };
  if (option) {
    if (!is_allowed(*option))
      return refuse(option_name, std::to_string(*option), kAllowed);
    out = *option;
  } else if (variable) {
    std::size_t size = 0;
    if (absl::SimpleAtoi(variable->value, &size) && is_allowed(size)) {
      out = size;
    } else {
      environment.ignore(*variable, kAllowed);
    }
  }
  return absl::OkStatus();
}

absl::Status read_spans(const Options& options, const Environment& environment,
                        Settings& out) {
  auto status = read_sampler(options, environment, out);
  if (status.ok())
    status = read_seconds(environment, "span_delay", options.span_delay,
                          environment.find("BSP_SCHEDULE_DELAY"),
                          TimeKind::kInterval, out.span_delay);
  if (status.ok())
    status = read_seconds(environment, "span_export_timeout",
                          options.span_export_timeout,
                          environment.find("BSP_EXPORT_TIMEOUT"),
                          TimeKind::kTimeout, out.span_export_timeout);
  if (status.ok())
    status = read_size(environment, "span_queue", options.span_queue,
                       environment.find("BSP_MAX_QUEUE_SIZE"), out.span_queue);
  if (status.ok())
    status = read_size(environment, "span_batch", options.span_batch,
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
  if (status.ok()) status = read_http(options, signal, environment, settings);
  if (status.ok())
    status = read_seconds(environment, "timeout", options.timeout,
                          environment.find_exporter("TIMEOUT"),
                          TimeKind::kTimeout, settings.timeout);
  if (status.ok()) status = read_gen_ai(options, signal, settings);
  if (status.ok()) status = read_resource(options, environment, settings);
  if (status.ok() && signal == Signal::kMetrics)
    status = read_metrics(options, environment, settings);
  if (status.ok() && signal == Signal::kTraces)
    status = read_spans(options, environment, settings);
  if (!status.ok()) return status;
  return settings;
}

}  // namespace vllm_metrics::inline v0::otlp
