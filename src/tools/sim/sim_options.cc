#include "src/tools/sim/sim_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "src/tools/sim/flags.h"
#include "src/tools/sim/scenario.h"
#include "src/tools/sim/step_cost.h"

namespace vllm_metrics::sim {
namespace {

constexpr double kYear = 365.0 * 86400.0;  // seconds

template <class T>
std::optional<T> parse_whole(std::string_view text, T min, T max) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, value);
  const bool fits =
      error == std::errc() && parsed == end && value >= min && value <= max;
  return fits ? std::optional(value) : std::nullopt;
}

FlagValue seed(std::uint64_t& variable) {
  return {.name = "N",
          .allowed = "a whole number from 0 to 18446744073709551615",
          .preset = fmt::format("{}", variable),
          .parse =
              [&variable](std::string_view value) {
                const auto n = parse_whole<std::uint64_t>(value, 0, UINT64_MAX);
                variable = n.value_or(0);
                return n.has_value();
              },
          .fits = {}};
}

FlagValue scenario(std::string& variable) {
  return {.name = "NAME",
          .allowed = scenario_names(),
          .preset = {},
          .parse =
              [&variable](std::string_view value) {
                variable = value;
                return find_scenario(value) != nullptr;
              },
          .fits = {}};
}

// Without a value of its own; `preset` says what that means.
FlagValue seconds(std::optional<double>& variable, double max,
                  std::string_view word, std::string_view preset) {
  double parsed = 0.0;
  FlagValue value = real(parsed, 0.0, max, word);
  value.preset = preset;
  value.parse = [&variable, max, word](std::string_view text) {
    double number = 0.0;
    const bool fits = real(number, 0.0, max, word).parse(text);
    variable = number;
    return fits;
  };
  return value;
}

FlagValue wire_version(WireVersion& variable) {
  return {.name = "V",
          .allowed = "0.27, 0.28, 0.29, 0.30, 0.31 or 0.32",
          .preset = fmt::format("{}.{}", variable.major, variable.minor),
          .parse =
              [&variable](std::string_view value) {
                if (!value.starts_with("0.")) return false;
                const auto minor = parse_whole<int>(value.substr(2), 27, 32);
                variable = {0, minor.value_or(0)};
                return minor.has_value();
              },
          .fits = {}};
}

FlagValue host_port(std::optional<HostPort>& variable) {
  return {.name = "HOST:PORT",
          .allowed =
              "a numeric address and a port from 0 to 65535, e.g. "
              "127.0.0.1:8000",
          .preset = {},
          .parse =
              [&variable](std::string_view value) {
                variable = parse_host_port(value);
                return variable.has_value();
              },
          .fits = {}};
}

// May be given more than once.
FlagValue page_at(std::vector<PageAt>& pages) {
  return {.name = "S:FILE",
          .allowed =
              "virtual seconds, a colon and a file, e.g. 60:page.txt; - is "
              "standard output",
          .preset = {},
          .parse =
              [&pages](std::string_view value) {
                const std::size_t colon = value.find(':');
                if (colon == std::string_view::npos) return false;
                double at = 0.0;
                const std::string_view file = value.substr(colon + 1);
                if (!real(at, 0.0, kYear).parse(value.substr(0, colon)) ||
                    file.empty()) {
                  return false;
                }
                pages.push_back({to_ticks(at), std::string(file)});
                return true;
              },
          .fits = {}};
}

FlagGroup source_flags(SimOptions& options) {
  return {
      "Where the requests come from",
      {{"--scenario",
        "a classic case: parameters that make its evidence; flags beside it "
        "change them. One of " +
            scenario_names(),
        scenario(options.scenario)},
       {"--trace",
        "requests from a public trace: JSON Lines with timestamp, "
        "input_length, output_length, hash_ids; or CSV with TIMESTAMP, "
        "ContextTokens, GeneratedTokens",
        text(options.trace, "FILE")},
       {"--seed", "of all that is drawn; the same seed gives the same run",
        seed(options.seed)}}};
}

FlagGroup run_flags(SimOptions& options) {
  return {"Run",
          {{"--speed", "virtual seconds in a real one; max: never wait",
            real(options.speed, 1e-3, 1e9, "max")},
           {"--seconds",
            "stop after so many virtual seconds at the latest, or unlimited",
            seconds(options.seconds, kYear, "unlimited",
                    "a trace ends by itself; synthetic: 60 s of arrivals, "
                    "endless with --listen unless --speed is max")},
           {"--begin",
            "the wall clock of that time at its beginning, in seconds since "
            "1970, or now",
            seconds(options.begin, 100.0 * kYear, "now",
                    "2025-01-01; a CSV trace: its own")},
           {"--log-interval", "virtual seconds between log lines; 0: none",
            real(options.log_interval, 0, kYear)},
           {"--processes",
            "so many runs at once, in a process each, with the seeds N, N+1, "
            "...; one page shows the sum of all",
            whole(options.processes, 1, 64)}}};
}

FlagGroup output_flags(SimOptions& options) {
  return {
      "What comes out",
      {{"--listen",
        "serve the page on http://HOST:PORT/metrics; port 0 takes any",
        host_port(options.listen)},
       {"--linger",
        "real seconds that the endpoint stays after the run, or unlimited",
        real(options.linger, 0, kYear, "unlimited")},
       {"--otlp-endpoint",
        "push the page, and a trace of each request, to an OpenTelemetry "
        "collector there, e.g. http://localhost:4318; the variables OTEL_... "
        "say how",
        text(options.otlp_endpoint, "URL")},
       {"--page", "write the last page there", text(options.page_file, "FILE")},
       {"--page-at",
        "write the page of a moment there, in virtual seconds; - is standard "
        "output. May be given more than once",
        page_at(options.pages)},
       {"--requests", "write a CSV row for each finished request there",
        text(options.requests_file, "FILE")},
       {"--itl", "write inter-token latencies with their counts there, CSV",
        text(options.itl_file, "FILE")},
       {"--model-name", "label model_name of the page",
        text(options.model_name, "NAME")},
       {"--metrics-version", "the vLLM release whose families are on the page",
        wire_version(options.wire_version)},
       {"--aggregate-engine-logging", "one log line for all engines",
        turn(options.aggregate_engine_logging)},
       {"--version", "print the version", turn(options.version)},
       {"--help", "print this", turn(options.help)}}};
}

// The presets in the help are the values of `options` now.
std::vector<FlagGroup> flags_of(SimOptions& options) {
  std::vector<FlagGroup> groups = {source_flags(options)};
  for (auto& group : workload_flags(options.parameters.workload)) {
    groups.push_back(std::move(group));
  }
  for (auto& group : engine_flags(options.parameters)) {
    groups.push_back(std::move(group));
  }
  groups.push_back(run_flags(options));
  groups.push_back(output_flags(options));
  return groups;
}

// A flag that does nothing unless another one is as it should be.
struct Need {
  std::string_view flag;
  bool met;
  std::string_view allowed;
};

// Flags that would be without effect beside the others.
absl::Status check_effects(const std::vector<std::string_view>& given,
                           SimOptions& options) {
  const Parameters& p = options.parameters;
  const bool own = options.trace.empty();
  const bool alone = options.processes == 1;
  const Need needs[] = {
      {"--scenario", own, "without --trace, it has its own workload"},
      {"--rate", p.workload.concurrency == 0,
       "without --concurrency, whose clients ask when they have an answer"},
      {"--long-prompt-tokens", p.workload.long_prompt_share > 0.0,
       "with --long-prompt-share above 0"},
      {"--prefix-groups", p.workload.prefix_share > 0.0,
       "with --prefix-share above 0"},
      {"--routing", p.engine.engines > 1, "with more than one of --engines"},
      {"--enable-expert-parallel", p.engine.shape.num_moe_layers > 0,
       "for a --model with experts"},
      {"--acceptance-rate", p.engine.speculative_tokens > 0,
       "with --speculative-tokens above 0"},
      {"--kv-transfer-bandwidth", p.engine.kv_transfer, "with --kv-transfer"},
      {"--kv-offload-size", p.engine.kv_offload != kOffloadNone,
       "with --kv-offload"},
      {"--kv-offload-bandwidth", p.engine.kv_offload != kOffloadNone,
       "with --kv-offload"},
      {"--kv-offload-store-threshold",
       p.engine.kv_offload == kOffloadNative ||
           p.engine.kv_offload == kOffloadBoth,
       "with --kv-offload native or both"},
      {"--kv-cache-metrics-sample", p.engine.kv_cache_metrics,
       "with --kv-cache-metrics"},
      {"--linger", options.listen.has_value(),
       "with --listen, whose endpoint it keeps"},
      {"--page-at", alone, "without --processes, which have a time each"},
      {"--requests", alone, "without --processes, which have requests each"},
      {"--otlp-endpoint", alone, "without --processes"},
      {"--itl", alone, "without --processes, which have requests each"},
  };
  for (const Need& need : needs) {
    const bool is_given =
        std::find(given.begin(), given.end(), need.flag) != given.end();
    if (need.met || !is_given) continue;
    return absl::InvalidArgumentError(
        fmt::format("{}: allowed only {}", need.flag, need.allowed));
  }
  if (own) return absl::OkStatus();
  const auto groups = workload_flags(options.parameters.workload);
  for (const Flag& flag : groups.front().flags) {
    if (std::find(given.begin(), given.end(), flag.name) == given.end()) {
      continue;
    }
    return absl::InvalidArgumentError(fmt::format(
        "{}: allowed only without --trace {}, it shapes the workload of its "
        "own",
        flag.name, options.trace));
  }
  return absl::OkStatus();
}

// A parameter's name is its flag's.
absl::Status as_flag(const absl::Status& status) {
  if (status.ok()) return status;
  const auto message = status.message();
  return absl::InvalidArgumentError(
      fmt::format("--{}", std::string_view(message.data(), message.size())));
}

}  // namespace

absl::StatusOr<SimOptions> parse_options(
    std::span<const char* const> arguments) {
  SimOptions options;
  const auto given = parse_flags(flags_of(options), arguments);
  if (!given.ok()) return given.status();
  if (!options.scenario.empty()) {
    // Once more, for what is said beside it counts, before it or behind.
    SimOptions preset;
    preset.parameters = find_scenario(options.scenario)->parameters();
    const auto again = parse_flags(flags_of(preset), arguments);
    if (!again.ok()) return again.status();
    options = std::move(preset);
  }
  EngineParameters& engine = options.parameters.engine;
  const std::string model = engine.model;
  absl::Status status = as_flag(choose_model(model, engine));
  if (!status.ok()) return status;
  status = check_effects(*given, options);
  if (!status.ok()) return status;
  status = as_flag(validate(options.parameters));
  if (!status.ok()) return status;
  std::stable_sort(
      options.pages.begin(), options.pages.end(),
      [](const PageAt& a, const PageAt& b) { return a.at < b.at; });
  return options;
}

std::string help_text() {
  SimOptions options;
  const auto flags = flags_of(options);
  return fmt::format(
      "vllm-metrics-sim [FLAG ...]\n\n"
      "Serves a workload with an engine core like vLLM's that needs no GPU, "
      "in\n"
      "virtual time, and shows its metrics: page, log lines, summary.\n\n"
      "  vllm-metrics-sim --listen 127.0.0.1:8000\n"
      "  vllm-metrics-sim --scenario preemption-storm --seconds 120 --speed "
      "max\n"
      "  vllm-metrics-sim --trace requests.jsonl --speed max\n"
      "{}\n"
      "A step takes what is longer: the arithmetic that the model's shape "
      "asks for, at\n"
      "{:g} of the device's peak, or its reads and writes, at {:g} of the "
      "peak; and\n"
      "{:g} ms, {:g} us for each request in it. Of the memory that is used, "
      "{:g} GB are\nfor activations.\n\n"
      "Exit status: 0 the run ended, by itself or by Ctrl-C; 1 a port or file "
      "could not\nbe used, or one of --processes died; 2 a flag or the trace "
      "is not as allowed.\n",
      describe_flags(flags), StepCostModel::kComputeEfficiency,
      StepCostModel::kBandwidthEfficiency, StepCostModel::kStepOverhead * 1e3,
      StepCostModel::kSequenceOverhead * 1e6,
      StepCostModel::kActivationBytes / 1e9);
}

std::optional<HostPort> parse_host_port(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto port = parse_whole<int>(text.substr(colon + 1), 0, 65535);
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  }
  if (host == "localhost") host = "127.0.0.1";
  if (host.empty() || !port.has_value()) return std::nullopt;
  return HostPort{std::string(host), *port};
}

}  // namespace vllm_metrics::sim
