#include "src/tools/doctor/doctor_options.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace vllm_metrics::doctor {

const std::string_view kUsage =
    R"(usage: vllm-metrics-doctor URL [--interval SECONDS] [--watch] [--dcgm URL]
       vllm-metrics-doctor --from FILE --to FILE [--elapsed SECONDS]

Reads two metrics pages of a vLLM server (or of an engine that has vLLM's
metrics), tells what holds it back, and which parameter to change.

Two scrapes of a server, e.g. http://127.0.0.1:8000/metrics:
  --interval SECONDS  between them, 0.1 to 3600 (default 15)
  --watch             go on, a report after each interval, until Ctrl-C
  --dcgm URL          also read the GPUs' exporter (DCGM), which tells compute
                      and memory bandwidth apart

Two saved pages (- is standard input):
  --from FILE         the earlier one; without it, since the server's start
  --to FILE           the later one
  --elapsed SECONDS   between them; without it, no rates (the simulator's pages
                      have a clock of their own)

What is still well enough:
  --ttft-p95 SECONDS  time to first token, 95th percentile (default 0.5)
  --itl-p99 SECONDS   between two outputs, 99th percentile (default 0.1)
  --tpot SECONDS      per output token, mean of a request (default 0.05)

  --json              for programs: one object a report
  --help, --version

Exit status: 0 healthy or idle, 1 something was found, 2 cannot tell: the
message says why.
)";

namespace {

struct TextOption {
  std::string_view name;
  std::string DoctorOptions::*field;
};
constexpr TextOption kTexts[] = {{"--dcgm", &DoctorOptions::dcgm},
                                 {"--from", &DoctorOptions::from},
                                 {"--to", &DoctorOptions::to}};

struct Turn {
  std::string_view name;
  bool DoctorOptions::*field;
};
constexpr Turn kTurns[] = {{"--json", &DoctorOptions::json},
                           {"--watch", &DoctorOptions::watch},
                           {"--help", &DoctorOptions::help},
                           {"-h", &DoctorOptions::help},
                           {"--version", &DoctorOptions::version}};

template <class... Args>
absl::Status invalid(fmt::format_string<Args...> text, Args&&... args) {
  return absl::InvalidArgumentError(
      fmt::format(text, std::forward<Args>(args)...));
}

absl::StatusOr<double> number(std::string_view name, std::string_view text,
                              double min, double max) {
  double value = 0.0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() ||
      !(value >= min && value <= max))
    return invalid("{} {}; allowed: a number from {} to {}", name, text, min,
                   max);
  return value;
}

// Sets the option that has a number. False when there is none of this name.
absl::StatusOr<bool> set_number(std::string_view name, std::string_view text,
                                DoctorOptions& out) {
  double* field = nullptr;
  double min = 0.1;
  double max = 3600.0;
  if (name == "--interval") {
    field = &out.interval;
  } else if (name == "--elapsed") {
    field = &out.elapsed.emplace();
    min = 1e-3;
    max = 1e9;
  } else if (name == "--ttft-p95") {
    field = &out.objectives.ttft_p95;
    min = 1e-3;
  } else if (name == "--itl-p99") {
    field = &out.objectives.itl_p99;
    min = 1e-3;
  } else if (name == "--tpot") {
    field = &out.objectives.tpot;
    min = 1e-3;
  } else {
    return false;
  }
  const auto value = number(name, text, min, max);
  if (!value.ok()) return value.status();
  *field = *value;
  return true;
}

absl::Status check(const DoctorOptions& options) {
  if (options.help || options.version) return absl::OkStatus();
  const bool files = !options.from.empty() || !options.to.empty();
  if (options.url.empty() && !files)
    return invalid("a URL, or --to FILE, is missing");
  if (!options.url.empty() && files)
    return invalid("URL {} and --from or --to; allowed: one of the two",
                   options.url);
  if (files && options.to.empty())
    return invalid("--from {} without --to FILE", options.from);
  if (options.url.empty() && (options.watch || !options.dcgm.empty()))
    return invalid("{} needs the URL of a server",
                   options.watch ? "--watch" : "--dcgm");
  if (!options.url.empty() && options.elapsed.has_value())
    return invalid("--elapsed is for saved pages; a URL is timed");
  return absl::OkStatus();
}

absl::Status set_value(std::string_view name, std::string_view value,
                       DoctorOptions& out) {
  for (const TextOption& text : kTexts) {
    if (text.name != name) continue;
    if (value.empty()) return invalid("{} is empty", name);
    out.*text.field = value;
    return absl::OkStatus();
  }
  const auto known = set_number(name, value, out);
  if (!known.ok()) return known.status();
  return *known ? absl::OkStatus() : invalid("there is no option {}", name);
}

}  // namespace

absl::StatusOr<DoctorOptions> parse_options(
    std::span<const char* const> arguments) {
  DoctorOptions options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument.size() < 2 || argument.front() != '-') {
      if (!options.url.empty())
        return invalid("one URL only, not also {}", argument);
      options.url = argument;
      continue;
    }
    bool turned = false;
    for (const Turn& turn : kTurns) {
      if (turn.name != argument) continue;
      options.*turn.field = true;
      turned = true;
    }
    if (turned) continue;
    const std::size_t equals = argument.find('=');
    const std::string_view name = argument.substr(0, equals);
    std::string_view value;
    if (equals != std::string_view::npos) {
      value = argument.substr(equals + 1);
    } else if (i + 1 < arguments.size()) {
      value = arguments[++i];
    }
    if (auto status = set_value(name, value, options); !status.ok())
      return status;
  }
  if (auto status = check(options); !status.ok()) return status;
  return options;
}

}  // namespace vllm_metrics::doctor
