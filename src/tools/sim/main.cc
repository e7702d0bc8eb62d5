// vllm-metrics-sim: an engine without a GPU, for its metrics.

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/tools/sim/otlp_push.h"
#include "src/tools/sim/processes.h"
#include "src/tools/sim/progress_line.h"
#include "src/tools/sim/real_time.h"
#include "src/tools/sim/run.h"
#include "src/tools/sim/sim_options.h"
#include "src/tools/sim/simulation.h"
#include "src/tools/sim/trace_reader.h"
#include "vllm_metrics/exposition/text_format.h"
#include "vllm_metrics/http/exposer.h"
#include "vllm_metrics/version.h"
#ifdef VLLM_METRICS_SIM_PROTOBUF
#include "vllm_metrics/protobuf/protobuf_format.h"
#endif
#ifdef VLLM_METRICS_SIM_SHM
#include "vllm_metrics/shm/shared_registry.h"
#endif
#ifdef VLLM_METRICS_SANDBOX
#include "src/tools/sandbox/pages.h"
#include "src/tools/sandbox/session.h"
#endif

namespace vllm_metrics::sim {
namespace {

constexpr int kExitUnusable = 1;    // a port, a file or memory
constexpr int kExitNotAllowed = 2;  // a flag or the trace

// Arrivals without --seconds, unless somebody is served while time passes.
constexpr double kSyntheticSeconds = 60.0;

int fail(int exit_status, std::string_view message) {
  fmt::print(stderr, "vllm-metrics-sim: {}\n", message);
  return exit_status;
}

std::string_view message_of(const absl::Status& status) {
  const auto message = status.message();
  return {message.data(), message.size()};
}

int fail(int exit_status, const absl::Status& status) {
  return fail(exit_status, message_of(status));
}

// What time it is, where that was asked for: the one thing of a run that is
// not drawn.
void begin_now(std::optional<double>& begin) {
  if (!begin || !std::isinf(*begin)) return;
  const std::chrono::duration<double> since_1970 =
      std::chrono::system_clock::now().time_since_epoch();
  begin = since_1970.count();
}

Ticks end_of_run(const SimOptions& options) {
  const double seconds = options.seconds.value_or(SimOptions::kUnlimited);
  return std::isinf(seconds) ? kNever : to_ticks(seconds);
}

absl::StatusOr<std::unique_ptr<Workload>> make_workload(
    const SimOptions& options) {
  if (!options.trace.empty()) {
    auto trace = read_trace(options.trace);
    if (absl::IsNotFound(trace.status())) {
      return absl::NotFoundError(
          fmt::format("--trace {}", message_of(trace.status())));
    }
    if (!trace.ok()) return trace.status();
    return std::make_unique<TraceWorkload>(
        options.trace, trace->epoch, std::move(trace->requests),
        options.parameters.workload, options.seed);
  }
  SyntheticWorkload::Limits limits = {
      .max_tokens = options.parameters.engine.max_model_len};
  const bool serving = options.listen.has_value() && !std::isinf(options.speed);
  if (!options.seconds.has_value() && !serving) {
    limits.end = to_ticks(kSyntheticSeconds);
  }
  return std::make_unique<SyntheticWorkload>(options.parameters.workload,
                                             limits, options.seed);
}

// A file that a flag asks for, opened before the run so that a bad name does
// not cost one.
class OutputFile {
 public:
  OutputFile(std::string_view flag, const std::string& name)
      : flag_(flag), name_(name) {
    if (!wanted() || is_standard_output()) return;
    errno = 0;
    out_.open(name, std::ios::trunc);
    error_ = errno;
  }

  bool wanted() const { return !name_.empty(); }
  std::ostream& out() { return is_standard_output() ? std::cout : out_; }

  // False, with a message, when not everything could be written so far.
  bool complete() {
    if (!wanted() || out().flush()) return true;
    if (error_ == 0) error_ = errno;
    fail(kExitUnusable, fmt::format("{} {}: cannot be written: {}", flag_,
                                    name_, std::strerror(error_)));
    return false;
  }

 private:
  bool is_standard_output() const { return name_ == "-"; }

  std::string_view flag_;
  std::string name_;
  std::ofstream out_;
  int error_ = 0;  // errno of opening it
};

struct OutputFiles {
  explicit OutputFiles(const SimOptions& options)
      : page("--page", options.page_file),
        requests("--requests", options.requests_file),
        inter_token("--itl", options.itl_file) {
    for (const PageAt& wanted : options.pages) {
      pages.emplace_back("--page-at", wanted.file);
    }
  }

  OutputFile page;
  OutputFile requests;
  OutputFile inter_token;
  std::vector<OutputFile> pages;  // as in SimOptions::pages

  // Each of them has its say.
  bool complete() {
    bool all = page.complete();
    all &= requests.complete();
    all &= inter_token.complete();
    for (OutputFile& file : pages) all &= file.complete();
    return all;
  }
};

// Null without --listen. Starts a thread, which is not to take the signals: not
// before there is a RealTime.
absl::StatusOr<std::unique_ptr<http::Exposer>> start_endpoint(
    const SimOptions& options, const std::shared_ptr<Registry>& registry,
    std::vector<http::ExtraPage> pages) {
  if (!options.listen.has_value()) return nullptr;
  http::ExposerOptions endpoint{.address = options.listen->host,
                                // Who types it means it.
                                .allow_all_interfaces = true,
                                .port = options.listen->port,
                                .extra_pages = std::move(pages)};
#ifdef VLLM_METRICS_SIM_PROTOBUF
  endpoint.protobuf = protobuf::page_writer;
#endif
  auto started = http::Exposer::start(registry, std::move(endpoint));
  if (!started.ok()) return started.status();
  // Not among the log lines: those are the same in every run of a seed.
  fmt::print("Listening on {}\n", (*started)->url());
  return started;
}

// Null without --otlp-endpoint. `hooks` get what makes a simulation pushed.
absl::StatusOr<std::unique_ptr<OtlpPush>> start_push(const SimOptions& options,
                                                     Simulation::Hooks& hooks) {
  if (options.otlp_endpoint.empty()) return nullptr;
  hooks.registry = Registry::create();
  auto started = OtlpPush::start(hooks.registry, options.otlp_endpoint);
  if (started.ok()) hooks.loggers = {(*started)->logger()};
  return started;
}

std::string summary_of(const Run& run, const RealTime& time) {
  const Simulation& simulation = run.simulation();
  return simulation.report().summary(
      {.workload = simulation.workload().description(),
       .virtual_seconds = to_seconds(simulation.now()),
       .real_seconds = time.elapsed_seconds(),
       .record_seconds = simulation.record_seconds(),
       .interrupted = time.interrupted(),
       .kv_cache_limited = simulation.kv_cache_limited()});
}

#ifdef VLLM_METRICS_SIM_SHM
class NoSink final : public LogSink {
  void write(LogLevel, double, int, std::string_view) override {}
};

// Tells the processes' log lines apart.
class NumberedSink final : public LogSink {
 public:
  explicit NumberedSink(std::size_t number) : number_(number) {}

  void write(LogLevel level, double time, int engine,
             std::string_view text) override {
    sink_->write(level, time, engine,
                 fmt::format("Process {}: {}", number_ + 1, text));
  }

 private:
  std::size_t number_;
  std::shared_ptr<LogSink> sink_ = LogSink::standard_error();
};

// One of --processes.
int run_process(SimOptions options, std::size_t number,
                const std::shared_ptr<Registry>& registry, std::FILE* out) {
  options.seed += number;
  RealTime time(options.speed);
  ProgressLine progress = ProgressLine::hidden();
  auto workload = make_workload(options);
  if (!workload.ok()) return fail(kExitNotAllowed, workload.status());
  auto created =
      Simulation::create(options, *std::move(workload),
                         {.log_sink = std::make_shared<NumberedSink>(number),
                          .finished = {},
                          .registry = registry});
  if (!created.ok()) return fail(kExitUnusable, created.status());
  Run run(*std::move(created), {}, time, progress, end_of_run(options));
  run.to_end();
  fmt::print(out, "{}", summary_of(run, time));
  return 0;
}

// Room for the names and banks of so many engines.
std::size_t segment_bytes_for(const EngineParameters& engine) {
  const std::size_t of_one = engine.native_histograms ? 512 << 10 : 128 << 10;
  return (512 << 10) + static_cast<std::size_t>(engine.engines) * of_one;
}

// This process has no engine: it looks after the others, and shows the page of
// all.
int serve_processes(const SimOptions& options,
                    std::unique_ptr<Workload> workload) {
  OutputFile page("--page", options.page_file);
  if (!page.complete()) return kExitUnusable;
  // What cannot be simulated is said once, not by each process.
  auto trial = Simulation::create(
      options, std::move(workload),
      {.log_sink = std::make_shared<NoSink>(), .finished = {}});
  if (!trial.ok()) return fail(kExitNotAllowed, trial.status());
  trial->reset();
  auto shared = shm::SharedRegistry::create(
      {.segment_bytes = segment_bytes_for(options.parameters.engine)});
  if (!shared.ok()) return fail(kExitUnusable, shared.status());
  const std::shared_ptr<Registry>& registry = (*shared)->registry();

  RealTime time(options.speed, ChildEnd::kWakes);
  const auto count = static_cast<std::size_t>(options.processes);
  auto started = Processes::start(count, [&](std::size_t i, std::FILE* out) {
    return run_process(options, i, registry, out);
  });
  if (!started.ok()) return fail(kExitUnusable, started.status());
  Processes& processes = **started;
  const auto exposer = start_endpoint(options, registry, {});
  if (!exposer.ok()) return fail(kExitUnusable, exposer.status());
  for (std::size_t i = 0; i < count; ++i) {
    fmt::print("Process {}: pid {}, seed {}\n", i + 1, processes.pid(i),
               options.seed + i);
  }
  std::fflush(stdout);

  bool is_asked_to_end = false;
  while (processes.any_runs()) {
    time.sleep(1.0);  // woken or not: a signal can be another's
    if (time.interrupted() && !std::exchange(is_asked_to_end, true)) {
      processes.interrupt();
    }
    processes.look(
        [](std::string_view failed) { fail(kExitUnusable, failed); });
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::string summary = processes.output(i);
    fmt::print("\nProcess {}, seed {}\n{}", i + 1, options.seed + i,
               summary.empty() ? "no summary\n" : summary);
  }
  std::fflush(stdout);
  if (page.wanted()) page.out() << TextFormat().render(*registry);
  const bool written = page.complete();
  if (*exposer != nullptr) time.linger(options.linger);
  return written && !processes.any_failed() ? 0 : kExitUnusable;
}
#endif

int serve(const SimOptions& options, std::unique_ptr<Workload> workload) {
  OutputFiles files(options);
  if (!files.complete()) return kExitUnusable;
  if (files.requests.wanted()) write_request_header(files.requests.out());

  ProgressLine progress;
  Simulation::Hooks hooks;
  hooks.log_sink = sink_above(progress);
  if (files.requests.wanted()) {
    hooks.finished = [&files](int engine, const Request& request) {
      write_request_row(files.requests.out(), engine, request);
    };
  }
  const auto push = start_push(options, hooks);
  if (!push.ok()) return fail(kExitNotAllowed, push.status());
  const Run::Factory factory = [&hooks, &workload](
                                   const SimOptions& wanted,
                                   std::shared_ptr<Registry> registry)
      -> absl::StatusOr<std::unique_ptr<Simulation>> {
    if (workload == nullptr) {  // the first one has been taken
      auto another = make_workload(wanted);
      if (!another.ok()) return another.status();
      workload = *std::move(another);
    }
    Simulation::Hooks all = hooks;
    all.registry = std::move(registry);
    return Simulation::create(wanted, std::move(workload), std::move(all));
  };
  SimOptions first = options;
#ifdef VLLM_METRICS_SANDBOX
  std::unique_ptr<sandbox::Session> session;
  if (options.listen.has_value() && options.trace.empty() &&
      !std::isinf(options.speed)) {
    session = std::make_unique<sandbox::Session>(options);
    first = session->first_options();
  }
#endif
  auto created = factory(first, hooks.registry);
  if (!created.ok()) return fail(kExitNotAllowed, created.status());
  const std::shared_ptr<Registry> registry = (*created)->registry();

  RealTime time(options.speed);
  std::vector<http::ExtraPage> extra_pages;
#ifdef VLLM_METRICS_SANDBOX
  if (session != nullptr) extra_pages = sandbox::pages_of(*session, registry);
#endif
  auto started = start_endpoint(options, registry, std::move(extra_pages));
  if (!started.ok()) return fail(kExitUnusable, started.status());
  const std::unique_ptr<http::Exposer> exposer = *std::move(started);
#ifdef VLLM_METRICS_SANDBOX
  if (session != nullptr) {
    std::string url = exposer->url();
    url.resize(url.size() - std::string_view("metrics").size());
    fmt::print("The sandbox is at {}\n", url);
  }
#endif
  std::fflush(stdout);

  Run run(*std::move(created), factory, time, progress, end_of_run(options));
#ifdef VLLM_METRICS_SANDBOX
  run.set_control(session.get());
#endif
  std::vector<Ticks> moments;
  for (const PageAt& page : options.pages) moments.push_back(page.at);
  run.stop_at(std::move(moments), [&files, &registry](std::size_t i) {
    files.pages[i].out() << TextFormat().render(*registry);
    files.pages[i].out().flush();
  });
  run.to_end();
  fmt::print("{}", summary_of(run, time));
  std::fflush(stdout);

  if (files.page.wanted()) {
    files.page.out() << TextFormat().render(*registry);
  }
  if (files.inter_token.wanted()) {
    write_inter_token_rows(files.inter_token.out(),
                           run.simulation().report().inter_token());
  }
  const bool written = files.complete();
  if (exposer != nullptr) time.linger(options.linger);
  if (*push != nullptr) (*push)->end();
  return written ? 0 : kExitUnusable;
}

int main_with(std::span<const char* const> arguments) {
  auto options = parse_options(arguments);
  if (!options.ok()) return fail(kExitNotAllowed, options.status());
  if (options->help) {
    fmt::print("{}", help_text());
    return 0;
  }
  if (options->version) {
    fmt::print("vllm-metrics-sim {}\n", version());
    return 0;
  }
  begin_now(options->begin);
  auto workload = make_workload(*options);
  if (!workload.ok()) {
    return fail(kExitNotAllowed, workload.status());
  }
  if (options->processes == 1) return serve(*options, *std::move(workload));
#ifdef VLLM_METRICS_SIM_SHM
  return serve_processes(*options, *std::move(workload));
#else
  return fail(kExitNotAllowed,
              "--processes: allowed only in a build with VLLM_METRICS_SHM");
#endif
}

}  // namespace
}  // namespace vllm_metrics::sim

int main(int argc, char** argv) {
  const std::span<const char* const> arguments(argv,
                                               static_cast<std::size_t>(argc));
  try {
    return vllm_metrics::sim::main_with(arguments.subspan(argc > 0 ? 1 : 0));
  } catch (const std::exception& error) {  // memory, or a full disk
    std::cerr << "vllm-metrics-sim: " << error.what() << '\n';
    return vllm_metrics::sim::kExitUnusable;
  }
}
