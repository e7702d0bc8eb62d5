#include "sandbox_ratio.h"

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "connection.h"
#include "contest.h"
#include "ratio_table.h"
#include "scraper.h"
#include "src/tools/sandbox/pages.h"
#include "src/tools/sandbox/session.h"
#include "src/tools/sim/run.h"
#include "src/tools/sim/simulation.h"
#include "src/tools/sim/workload.h"
#include "vllm_metrics/http/exposer.h"

namespace vllm_metrics::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

// The sandbox's control, and the time between two of its visits.
class TimedSession final : public sim::RunControl {
 public:
  explicit TimedSession(sandbox::Session& session) : session_(session) {}

  bool visit(sim::Run& run) override {
    if (begun_) times_.push_back(1e9 * seconds_since(last_));
    begun_ = true;
    last_ = SteadyClock::now();
    return session_.visit(run);
  }

  double p50() const { return median(times_); }

 private:
  sandbox::Session& session_;
  std::vector<double> times_;
  bool begun_ = false;
  SteadyClock::time_point last_;
};

// Asks as the page does in two seconds.
void ask_as_the_page(Connection& browser) {
  for (int i = 0; i < 4; ++i) {
    browser.get("/metrics");
    browser.get("/api/state");
  }
  browser.get("/api/doctor");
}

struct Timed {
  double p50 = 0.0;  // nanoseconds of an event, nearly all of them steps
  double requests_per_second = 0.0;
};

Timed time_run(bool open) {
  constexpr double kVirtualSeconds = 100.0;
  sim::SimOptions options;
  options.speed = 1e6;  // it never waits, and is not that fast
  options.log_interval = 0.0;
  options.parameters.engine.enable_mfu_metrics = true;
  options.parameters.workload.concurrency = 64;
  const sim::Run::Factory factory = [](const sim::SimOptions& wanted,
                                       std::shared_ptr<Registry> registry) {
    sim::Simulation::Hooks hooks;
    hooks.registry = std::move(registry);
    return sim::Simulation::create(
        wanted,
        std::make_unique<sim::SyntheticWorkload>(
            wanted.parameters.workload, sim::SyntheticWorkload::Limits(),
            wanted.seed),
        std::move(hooks));
  };
  sandbox::Session session(options);
  auto simulation = factory(session.first_options(), nullptr);
  if (!simulation.ok()) give_up(simulation.status().ToString().c_str());
  const auto registry = (*simulation)->registry();
  sim::RealTime time(options.speed);
  auto exposer = http::Exposer::start(
      registry,
      {.port = 0, .extra_pages = sandbox::pages_of(session, registry)});
  if (!exposer.ok()) give_up(exposer.status().ToString().c_str());

  sim::ProgressLine progress;
  sim::Run run(*std::move(simulation), factory, time, progress,
               sim::to_ticks(kVirtualSeconds));
  TimedSession timed(session);
  run.set_control(&timed);
  Connection browser((*exposer)->port());
  std::optional<Scraper> page;
  if (open) page.emplace([&browser] { ask_as_the_page(browser); });
  run.to_end();
  return {timed.p50(), open ? 9.0 * page->scrapes_per_second() : 0.0};
}

}  // namespace

void measure_sandbox(Ratios& ratios) {
  constexpr std::size_t kRepetitions = 11;
  std::vector<double> closed, open, requests, ratio;
  for (std::size_t i = 0; i < kRepetitions; ++i) {
    closed.push_back(time_run(/*open=*/false).p50);
    const Timed round = time_run(/*open=*/true);
    open.push_back(round.p50);
    requests.push_back(round.requests_per_second);
    ratio.push_back(open.back() / closed.back());
  }
  std::printf("%-44s %14.1f ns\n", "closed, p50", median(closed));
  std::printf("%-44s %14.1f ns\n", "open, p50", median(open));
  std::printf("%-44s %14.1f\n", "requests a second", median(requests));
  ratios.push_back({"step_p50_page_open_vs_closed", median(ratio), 1.1});
}

}  // namespace vllm_metrics::bench
