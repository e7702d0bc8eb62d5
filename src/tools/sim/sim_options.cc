#include "src/tools/sim/sim_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "src/tools/sim/flags.h"

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
          .parse = [&variable](std::string_view value) {
            const auto n = parse_whole<std::uint64_t>(value, 0, UINT64_MAX);
            variable = n.value_or(0);
            return n.has_value();
          }};
}

FlagValue gpu_blocks(SimOptions& options) {
  constexpr std::int64_t kMax = 100'000'000;
  return {
      .name = "N",
      .allowed = fmt::format("a whole number from 0 to {}, or unlimited", kMax),
      .preset = fmt::format("what the memory holds: {} of {} tokens",
                            options.hardware.num_gpu_blocks(options.block_size),
                            options.block_size),
      .parse = [&options](std::string_view value) {
        options.num_gpu_blocks =
            value == "unlimited" ? KvBlockPool::kUnlimited
                                 : parse_whole<std::int64_t>(value, 0, kMax);
        return options.num_gpu_blocks.has_value();
      }};
}

FlagValue seconds(std::optional<double>& variable) {
  double parsed = 0.0;
  FlagValue value = real(parsed, 0.0, kYear, "unlimited");
  value.preset =
      "a trace ends by itself; synthetic: 60 s of arrivals, endless with "
      "--listen unless --speed is max";
  value.parse = [&variable](std::string_view text) {
    double number = 0.0;
    const bool fits = real(number, 0.0, kYear, "unlimited").parse(text);
    variable = number;
    return fits;
  };
  return value;
}

FlagValue wire_version(WireVersion& variable) {
  return {.name = "V",
          .allowed = "0.27, 0.28, 0.29 or 0.30",
          .preset = fmt::format("{}.{}", variable.major, variable.minor),
          .parse = [&variable](std::string_view value) {
            if (!value.starts_with("0.")) return false;
            const auto minor = parse_whole<int>(value.substr(2), 27, 30);
            variable = {0, minor.value_or(0)};
            return minor.has_value();
          }};
}

FlagValue host_port(std::optional<HostPort>& variable) {
  return {.name = "HOST:PORT",
          .allowed =
              "a numeric address and a port from 0 to 65535, e.g. "
              "127.0.0.1:8000",
          .preset = {},
          .parse = [&variable](std::string_view value) {
            variable = parse_host_port(value);
            return variable.has_value();
          }};
}

FlagGroup workload_flags(SimOptions& options) {
  SyntheticWorkload::Options& synthetic = options.synthetic;
  return {
      "Workload: a trace, or a synthetic one",
      {{"--trace",
        "requests from a public trace: JSON Lines with timestamp, "
        "input_length, output_length, hash_ids; or CSV with TIMESTAMP, "
        "ContextTokens, GeneratedTokens",
        text(options.trace, "FILE")},
       {"--rate", "synthetic: requests per second",
        real(synthetic.rate, 1e-6, 1e6)},
       {"--prompt-tokens", "synthetic: mean length of a prompt",
        real(synthetic.prompt_tokens, 1, 1e6)},
       {"--output-tokens", "synthetic: mean length of an output",
        real(synthetic.output_tokens, 1, 1e6)},
       {"--prefix-share",
        "synthetic: the part of each prompt, 0 to 1, that is one of 8 shared "
        "texts",
        real(synthetic.prefix_share, 0, 1)},
       {"--seed", "of all that is drawn; the same seed gives the same run",
        seed(options.seed)}}};
}

FlagGroup engine_flags(SimOptions& options) {
  constexpr std::int64_t kMany = 1 << 30;
  SchedulerParameters& scheduler = options.scheduler;
  return {"Engine",
          {{"--engines", "data-parallel engines, each with its own KV cache",
            whole(options.engines, 1, 256)},
           {"--max-num-batched-tokens", "token budget of a step",
            whole(scheduler.max_num_batched_tokens, 1, kMany)},
           {"--max-num-seqs", "requests that run at once",
            whole(scheduler.max_num_seqs, 1, kMany)},
           {"--max-model-len",
            "tokens of prompt and output together; longer requests are refused",
            whole(scheduler.max_model_len, 1, kMany)},
           {"--num-gpu-blocks",
            "KV blocks of each engine; 0 and unlimited: no limit",
            gpu_blocks(options)},
           {"--block-size", "tokens in a KV block",
            whole(options.block_size, 1, 65536)},
           {"--no-prefix-caching", "compute every prompt from its beginning",
            turn(scheduler.prefix_caching, false)}}};
}

FlagGroup run_flags(SimOptions& options) {
  return {"Run",
          {{"--speed", "virtual seconds in a real one; max: never wait",
            real(options.speed, 1e-3, 1e9, "max")},
           {"--seconds",
            "stop after so many virtual seconds at the latest, or unlimited",
            seconds(options.seconds)},
           {"--log-interval", "virtual seconds between log lines; 0: none",
            real(options.log_interval, 0, kYear)}}};
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
       {"--page", "write the last page there", text(options.page_file, "FILE")},
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
  return {workload_flags(options), engine_flags(options), run_flags(options),
          output_flags(options)};
}

// Flags that would be without effect beside the others.
absl::Status check_together(const std::vector<std::string_view>& given,
                            const SimOptions& options) {
  for (const std::string_view name : given) {
    const bool synthetic = name == "--rate" || name == "--prompt-tokens" ||
                           name == "--output-tokens" ||
                           name == "--prefix-share";
    if (synthetic && !options.trace.empty()) {
      return absl::InvalidArgumentError(
          fmt::format("{}: allowed only without --trace {}, it shapes the "
                      "synthetic workload",
                      name, options.trace));
    }
    if (name == "--linger" && !options.listen.has_value()) {
      return absl::InvalidArgumentError(
          "--linger: allowed only with --listen, whose endpoint it keeps");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SimOptions> parse_options(
    std::span<const char* const> arguments) {
  SimOptions options;
  const auto flags = flags_of(options);
  const auto given = parse_flags(flags, arguments);
  if (!given.ok()) return given.status();
  if (absl::Status status = check_together(*given, options); !status.ok()) {
    return status;
  }
  return options;
}

std::string help_text() {
  SimOptions options;
  const Hardware& h = options.hardware;
  const auto flags = flags_of(options);
  return fmt::format(
      "vllm-metrics-sim [FLAG ...]\n\n"
      "Serves a workload with an engine core like vLLM's that needs no GPU, "
      "in\n"
      "virtual time, and shows its metrics: page, log lines, summary.\n\n"
      "  vllm-metrics-sim --listen 127.0.0.1:8000\n"
      "  vllm-metrics-sim --trace requests.jsonl --speed max\n"
      "{}\n"
      "A step takes {:g} ms, {:g} us for each request in it, and what takes "
      "longer:\narithmetic at {:g} TFLOP/s x {:g}, or reading weights and KV "
      "cache at\n{:g} TB/s x {:g}. The model has {:g}e9 parameters in bf16 and "
      "{:g} KiB of KV cache\nfor each token ({:g} layers, {:g} KV heads of "
      "{:g}). The device has {:g} GB: {:g} % are\nused, {:g} GB of them for "
      "activations.\n\n"
      "Exit status: 0 the run ended, by itself or by Ctrl-C; 1 a port or file "
      "could not\nbe used; 2 a flag or the trace is not as allowed.\n",
      describe_flags(flags), h.step_overhead * 1e3, h.sequence_overhead * 1e6,
      h.peak_flops / 1e12, h.compute_efficiency, h.memory_bandwidth / 1e12,
      h.bandwidth_efficiency, h.parameters / 1e9,
      h.kv_bytes_per_token() / 1024.0, h.layers, h.kv_heads, h.head_size,
      h.memory_bytes / 1e9, h.memory_fraction * 100.0,
      h.activation_bytes / 1e9);
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
