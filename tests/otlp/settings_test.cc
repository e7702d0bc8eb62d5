#include "src/otlp/settings.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/otlp/instance_id.h"

namespace vllm_metrics::otlp {
namespace {

using Variables = std::map<std::string, std::string>;

Options with(Variables variables, Options options = {}) {
  options.environment =
      [variables = std::move(variables)](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
  return options;
}

Settings read(Variables variables, Options options = {},
              Signal signal = Signal::kMetrics) {
  auto settings = resolve(with(std::move(variables), options), signal);
  INFO(settings.status());
  REQUIRE(settings.ok());
  return *std::move(settings);
}

std::string refusal(Variables variables, Options options = {}) {
  const auto settings =
      resolve(with(std::move(variables), options), Signal::kMetrics);
  return settings.ok() ? "taken" : std::string(settings.status().message());
}

class KeptLog final : public LogSink {
 public:
  void write(LogLevel, double, int, std::string_view text) override {
    lines.emplace_back(text);
  }
  std::vector<std::string> lines;
};

// What is said of variables that are then ignored.
std::vector<std::string> warnings(Variables variables,
                                  Signal signal = Signal::kMetrics) {
  const auto log = std::make_shared<KeptLog>();
  static_cast<void>(read(std::move(variables), {.log_sink = log}, signal));
  return log->lines;
}

// Without what tells processes apart.
Pairs said(Pairs resource) {
  std::erase_if(resource, [](const auto& pair) {
    return pair.first == "service.instance.id";
  });
  return resource;
}

TEST_CASE("Settings: without any word they are OpenTelemetry's defaults",
          "[otlp]") {
  const Settings settings = read({});
  CHECK(settings.url == "http://localhost:4318/v1/metrics");
  CHECK(settings.timeout == 10.0);
  CHECK(settings.export_interval == 60.0);
  CHECK(settings.export_timeout == 30.0);
  CHECK(settings.temporality == Temporality::kCumulative);
  CHECK(settings.compression == Compression::kNone);
  CHECK_FALSE(settings.disabled);
  CHECK(said(settings.resource) == Pairs{{"service.name", "unknown_service"}});
  CHECK(read({}, {}, Signal::kTraces).url == "http://localhost:4318/v1/traces");
}

TEST_CASE("Settings: a signal's variable beats the general one, an option both",
          "[otlp]") {
  Variables variables{{"OTEL_EXPORTER_OTLP_ENDPOINT", "https://a:1/x/"}};
  CHECK(read(variables).url == "https://a:1/x/v1/metrics");
  variables["OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"] = "http://b/in";
  CHECK(read(variables).url == "http://b/in");
  CHECK(read(variables, {.endpoint = "http://c"}).url == "http://c/v1/metrics");
  CHECK(read(variables, {.metrics_endpoint = "http://d/in"}).url ==
        "http://d/in");

  variables["OTEL_EXPORTER_OTLP_TIMEOUT"] = "2500";
  CHECK(read(variables).timeout == 2.5);
  variables["OTEL_EXPORTER_OTLP_METRICS_TIMEOUT"] = "500";
  CHECK(read(variables).timeout == 0.5);
  CHECK(read(variables, {.timeout = 3.0}).timeout == 3.0);
}

TEST_CASE("Settings: lists are decoded, and one beats the other by name",
          "[otlp]") {
  const Settings settings = read(
      {{"OTEL_EXPORTER_OTLP_HEADERS", "a=b%20c, Authorization = Basic%3D="},
       {"OTEL_RESOURCE_ATTRIBUTES", "service.name=r,%7aone=eu%2C1,pod=p"},
       {"OTEL_SERVICE_NAME", "s"}},
      {.resource_attributes = {{"pod", "q"}}});
  CHECK(settings.headers == Pairs{{"a", "b c"}, {"Authorization", "Basic=="}});
  CHECK(said(settings.resource) ==
        Pairs{{"service.name", "s"}, {"zone", "eu,1"}, {"pod", "q"}});
}

TEST_CASE("Settings: an empty variable counts as unset", "[otlp]") {
  const std::string nothing = GENERATE("", "  ");
  CHECK(read({{"OTEL_EXPORTER_OTLP_TIMEOUT", nothing}}).timeout == 10.0);
  CHECK(read({{"OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", nothing},
              {"OTEL_EXPORTER_OTLP_TIMEOUT", "500"}})
            .timeout == 0.5);
}

TEST_CASE("Settings: a process has an instance id of its own, until told one",
          "[otlp]") {
  const auto id = [](const Settings& settings) {
    for (const auto& [name, value] : settings.resource)
      if (name == "service.instance.id") return value;
    return std::string();
  };
  const std::string own = id(read({}));
  CHECK(own.size() == 36);
  CHECK(own.find_first_not_of("0123456789abcdef-") == own.npos);
  CHECK(own[14] == '4');
  CHECK(id(read({}, {}, Signal::kTraces)) == own);
  const Variables told{{"OTEL_RESOURCE_ATTRIBUTES", "service.instance.id=a"}};
  CHECK(id(read(told)) == "a");
  CHECK(
      id(read(told, {.resource_attributes = {{"service.instance.id", "b"}}})) ==
      "b");

  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const std::string other = instance_id();
    _exit(write(ends[1], other.data(), other.size()) == 36 ? 0 : 1);
  }
  std::string other(36, ' ');
  CHECK(::read(ends[0], other.data(), other.size()) == 36);
  CHECK(other != own);
  waitpid(child, nullptr, 0);
  close(ends[0]);
  close(ends[1]);
}

TEST_CASE("Settings: a path goes before what follows a path in an URL",
          "[otlp]") {
  CHECK(read({}, {.endpoint = "http://c:1/x?key=/a"}).url ==
        "http://c:1/x/v1/metrics?key=/a");
  CHECK(read({}, {.endpoint = "http://c:1?key=a"}).url ==
        "http://c:1/v1/metrics?key=a");
}

TEST_CASE("Settings: choices have no case", "[otlp]") {
  const Settings settings =
      read({{"OTEL_EXPORTER_OTLP_COMPRESSION", "GZIP"},
            {"OTEL_EXPORTER_OTLP_PROTOCOL", "HTTP/Protobuf"},
            {"OTEL_METRICS_EXPORTER", "OTLP"},
            {"OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION",
             "Explicit_Bucket_Histogram"}});
  CHECK(settings.compression == Compression::kGzip);
  CHECK(settings.explicit_histograms);
  CHECK(read({{"OTEL_METRICS_EXPORTER", "None"}}).disabled);
  CHECK(read({{"OTEL_TRACES_SAMPLER", "ALWAYS_OFF"}}, {}, Signal::kTraces)
            .root_ratio == 0.0);
}

struct NoTransport final : Transport {
  Response send(const Request&) override { return {}; }
};

TEST_CASE("Settings: what is not used is not looked at", "[otlp]") {
  const Variables variables{
      {"OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318"},
      {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"},
      {"OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere/ca.pem"}};
  const auto log = std::make_shared<KeptLog>();
  CHECK(read(variables, {.metrics_file = "m.jsonl", .log_sink = log}).file ==
        "m.jsonl");
  Variables to_output = variables;
  to_output["OTEL_METRICS_EXPORTER"] = "otlp/stdout";
  to_output["OTEL_EXPORTER_OTLP_HEADERS"] = "none";
  CHECK(read(to_output, {.log_sink = log}).file == "/dev/stdout");
  const Settings own =
      read(variables,
           {.log_sink = log, .transport = std::make_shared<NoTransport>()});
  CHECK(own.url == "localhost:4318/v1/metrics");
  CHECK(log->lines.empty());
}

TEST_CASE("Settings: the variables of the metrics exporter", "[otlp]") {
  const Settings settings =
      read({{"OTEL_METRIC_EXPORT_INTERVAL", "5000"},
            {"OTEL_METRIC_EXPORT_TIMEOUT", "1000"},
            {"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "Delta"},
            {"OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"},
            {"OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION",
             "explicit_bucket_histogram"},
            {"OTEL_EXPORTER_OTLP_TIMEOUT", "0"}});
  CHECK(settings.export_interval == 5.0);
  CHECK(settings.export_timeout == 1.0);
  CHECK(settings.temporality == Temporality::kDelta);
  CHECK(settings.compression == Compression::kGzip);
  CHECK(settings.explicit_histograms);
  CHECK(settings.timeout == 86'400.0);  // no limit, for OpenTelemetry
}

TEST_CASE("Settings: the variables of spans", "[otlp]") {
  const Settings settings = read({{"OTEL_TRACES_SAMPLER", "traceidratio"},
                                  {"OTEL_TRACES_SAMPLER_ARG", "0.25"},
                                  {"OTEL_BSP_SCHEDULE_DELAY", "100"},
                                  {"OTEL_BSP_MAX_QUEUE_SIZE", "16"},
                                  {"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "8"}},
                                 {}, Signal::kTraces);
  CHECK_FALSE(settings.parent_based);
  CHECK(settings.root_ratio == 0.25);
  CHECK(settings.span_delay == 0.1);
  CHECK(settings.span_queue == 16);
  CHECK(settings.span_batch == 8);

  const auto refused = [](const Options& options) {
    return std::string(
        resolve(with({}, options), Signal::kTraces).status().message());
  };
  CHECK(refused({.root_ratio = 1.5}) == "root_ratio = \"1.5\" is not 0 to 1");
  CHECK(refused({.span_queue = 0}) ==
        "span_queue = \"0\" is not a number, 1 to 65536");

  const Variables bad{{"OTEL_TRACES_SAMPLER", "jaeger_remote"},
                      {"OTEL_BSP_MAX_QUEUE_SIZE", "-1"},
                      {"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "many"}};
  CHECK(warnings(bad, Signal::kTraces) ==
        std::vector<std::string>{
            "OTLP: OTEL_TRACES_SAMPLER = \"jaeger_remote\" is not always_on, "
            "always_off or traceidratio, each with or without parentbased_ "
            "before it, and is ignored.",
            "OTLP: OTEL_BSP_MAX_QUEUE_SIZE = \"-1\" is not a number, 1 to "
            "65536, and is ignored.",
            "OTLP: OTEL_BSP_MAX_EXPORT_BATCH_SIZE = \"many\" is not a number, "
            "1 to 65536, and is ignored."});
  const auto log = std::make_shared<KeptLog>();
  const Settings kept = read(bad, {.log_sink = log}, Signal::kTraces);
  CHECK(kept.parent_based);
  CHECK(kept.root_ratio == 1.0);
  CHECK(kept.span_queue == 2048);
  CHECK(kept.span_batch == 512);
}

TEST_CASE("Settings: a bad place is refused by name, value and what is allowed",
          "[otlp]") {
  const auto [name, value, allowed] =
      GENERATE(table<std::string, std::string, std::string>(
          {{"OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318",
            "an URL: http://host:port or https://host:port"},
           {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:99999",
            "an URL: http://host:port or https://host:port"},
           {"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://:4318",
            "an URL: http://host:port or https://host:port"},
           {"OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere/ca.pem",
            "a file that can be read"},
           {"OTEL_EXPORTER_OTLP_METRICS_CLIENT_KEY", "/nowhere/key.pem",
            "a file that can be read"}}));
  CHECK(refusal({{name, value}}) ==
        name + " = \"" + value + "\" is not " + allowed);
}

TEST_CASE("Settings: a bad choice or number is ignored, and said", "[otlp]") {
  const auto [name, value, allowed] =
      GENERATE(table<std::string, std::string, std::string>(
          {{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "http/protobuf"},
           {"OTEL_EXPORTER_OTLP_COMPRESSION", "zstd", "gzip or none"},
           {"OTEL_EXPORTER_OTLP_TIMEOUT", "10s",
            "a number of milliseconds, 1 to 86400000, or 0 for no limit"},
           {"OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "-1",
            "a number of milliseconds, 1 to 86400000, or 0 for no limit"},
           {"OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION",
            "summary",
            "explicit_bucket_histogram or base2_exponential_bucket_histogram"},
           {"OTEL_METRIC_EXPORT_INTERVAL", "0",
            "a number of milliseconds, 1 to 86400000"},
           {"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "sometimes",
            "cumulative, delta or lowmemory"},
           {"OTEL_METRICS_EXPORTER", "prometheus", "otlp, otlp/stdout or none"},
           {"OTEL_RESOURCE_ATTRIBUTES", "a=%4",
            "a list of name=value with commas between, other characters as "
            "%xx"}}));
  CHECK(warnings({{name, value}}) ==
        std::vector<std::string>{"OTLP: " + name + " = \"" + value +
                                 "\" is not " + allowed + ", and is ignored."});
  const Settings settings =
      read({{name, value}}, {.log_sink = std::make_shared<KeptLog>()});
  CHECK(settings.timeout == 10.0);
  CHECK(settings.export_interval == 60.0);
  CHECK(settings.compression == Compression::kNone);
  CHECK(settings.temporality == Temporality::kCumulative);
  CHECK_FALSE(settings.explicit_histograms);
  CHECK_FALSE(settings.disabled);
  CHECK(said(settings.resource) == Pairs{{"service.name", "unknown_service"}});
}

TEST_CASE("Settings: only true disables, and then nothing else is looked at",
          "[otlp]") {
  CHECK(read({{"OTEL_SDK_DISABLED", "TRUE"},
              {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}})
            .disabled);
  CHECK_FALSE(
      read({{"OTEL_SDK_DISABLED", "true"}}, {.disabled = false}).disabled);
  const auto log = std::make_shared<KeptLog>();
  CHECK_FALSE(
      read({{"OTEL_SDK_DISABLED", "False"}}, {.log_sink = log}).disabled);
  CHECK(log->lines.empty());
  CHECK_FALSE(read({{"OTEL_SDK_DISABLED", "yes"}}, {.log_sink = log}).disabled);
  CHECK(log->lines == std::vector<std::string>{
                          "OTLP: OTEL_SDK_DISABLED = \"yes\" is not true or "
                          "false, and counts as false."});
}

TEST_CASE("Settings: a header's value is in no message", "[otlp]") {
  CHECK(refusal({{"OTEL_EXPORTER_OTLP_HEADERS", "secret"}}).find("\"...\"") !=
        std::string::npos);
  CHECK(refusal({}, {.headers = Pairs{{"a", "secret\r\nx: y"}}}) ==
        "headers: the one named \"a\" has a character that a header cannot "
        "have");
}

TEST_CASE("Settings: an option is held to its limits", "[otlp]") {
  CHECK(refusal({}, {.timeout = 0.0}) ==
        "timeout = \"0\" is not above 0 and up to 86400 seconds");
  CHECK(refusal({}, {.export_interval = -1.0}) ==
        "export_interval = \"-1\" is not above 0 and up to 86400 seconds");
}

TEST_CASE("Settings: what the conventions want to know has a name", "[otlp]") {
  CHECK_FALSE(read({}).gen_ai);
  const Settings settings = read({}, {.gen_ai = GenAiMetrics{}});
  REQUIRE(settings.gen_ai);
  CHECK(settings.gen_ai->provider == "vllm");
  CHECK(settings.gen_ai->operation == "text_completion");
  CHECK(refusal({}, {.gen_ai = GenAiMetrics{.operation = ""}}) ==
        "gen_ai.operation = \"\" is not a name");
  CHECK(read({}, {}, Signal::kTraces).gen_ai->provider == "vllm");
}

TEST_CASE("Settings: a file stands in for the collector", "[otlp]") {
  const Options files{.metrics_file = "m.jsonl",
                      .traces_file = "t.jsonl",
                      .file_max_bytes = 100};
  CHECK(read({}).file.empty());
  CHECK(read({}, files).file == "m.jsonl");
  CHECK(read({}, files).file_max_bytes == 100);
  CHECK(read({}, files, Signal::kTraces).file == "t.jsonl");
  CHECK(read({{"OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"}}, files).compression ==
        Compression::kNone);
  CHECK(refusal({}, {.metrics_file = ""}) ==
        "metrics_file = \"\" is not the path of a file");
  CHECK(refusal({}, {.metrics_file = "x", .traces_file = "x"}) ==
        "metrics_file = \"x\" is not a file of its own: metrics_file and "
        "traces_file may not be the same");

  const auto variable = [](const char* value) {
    return Variables{{"OTEL_METRICS_EXPORTER", value}};
  };
  CHECK(read(variable("otlp")).file.empty());
  CHECK(read(variable("otlp/stdout")).file == "/dev/stdout");
  CHECK(read(variable("otlp/stdout"), files).file == "m.jsonl");
  CHECK(read(variable("none")).disabled);
  CHECK_FALSE(read(variable("none"), {.disabled = false}).disabled);
  CHECK_FALSE(read(variable("none"), {}, Signal::kTraces).disabled);
}

}  // namespace
}  // namespace vllm_metrics::otlp
