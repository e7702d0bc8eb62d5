#include "scraped_step.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "contest.h"
#include "engines.h"
#include "scraper.h"
#include "step_data.h"
#include "vllm_metrics/catalogue/catalogue.h"
#include "vllm_metrics/exposition/text_format.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics::bench {
namespace {

using SteadyClock = std::chrono::steady_clock;

double nanoseconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double, std::nano>(SteadyClock::now() - start)
      .count();
}

// The generation tokens of all engines, from the page's words.
std::uint64_t generation_tokens(const Registry& registry) {
  Snapshot snapshot;
  registry.snapshot(snapshot);
  std::uint64_t total = 0;
  for (const SchemaFamily& family : snapshot.schema->families) {
    if (family.family.name != spec_of(MetricId::kGenerationTokens).name)
      continue;
    for (const Series& series : family.series)
      total += snapshot.integer(series);
  }
  return total;
}

}  // namespace

std::vector<double> time_steps(StatLoggerManager& manager,
                               const std::vector<Step>& steps,
                               std::size_t count) {
  constexpr double kGapNanoseconds = 5000.0;
  Carousel carousel(steps);
  std::vector<double> times(count);
  for (double& time : times) {
    const Step& step = carousel.next();
    const auto start = SteadyClock::now();
    record(manager, step);
    time = nanoseconds_since(start);
    while (nanoseconds_since(start) < time + kGapNanoseconds) {
    }
  }
  return times;
}

ScrapedStep time_disturbed_step(StatLoggerManager& manager, std::size_t count,
                                std::function<void()> scrape) {
  static const auto steps = make_steps({});
  time_steps(manager, steps, 300);
  const auto idle = time_steps(manager, steps, count);
  Scraper scraper(std::move(scrape));
  const auto scraped = time_steps(manager, steps, count);
  return {median(idle), quantile(idle, 0.99), median(scraped),
          quantile(scraped, 0.99), scraper.scrapes_per_second()};
}

ScrapedStep time_scraped_step(std::size_t count) {
  const auto manager = make_manager(prometheus_only(1));
  TextFormat format;
  return time_disturbed_step(*manager, count, [&format, &manager] {
    format.render(*manager->registry());
  });
}

double time_concurrent_steps(std::size_t threads, bool one_engine,
                             std::size_t count) {
  static const auto steps = make_steps({});
  const auto manager = make_manager(prometheus_only(threads));
  std::atomic<std::size_t> ready{0};
  const auto work = [&](std::size_t thread) {
    Carousel carousel(steps);
    ready.fetch_add(1);
    while (ready.load() < threads) {
    }
    for (std::size_t i = 0; i < count; ++i)
      record(*manager, carousel.next(), one_engine ? 0 : thread);
  };
  std::vector<std::thread> others;
  const auto start = SteadyClock::now();
  for (std::size_t thread = 1; thread < threads; ++thread)
    others.emplace_back(work, thread);
  work(0);
  for (std::thread& other : others) other.join();
  const double time = nanoseconds_since(start);

  const auto expected = threads * count * 256;
  const auto counted = generation_tokens(*manager->registry());
  if (counted != expected) {
    std::fprintf(stderr, "%zu threads recorded %zu tokens, the page has %zu\n",
                 threads, expected, static_cast<std::size_t>(counted));
    std::exit(EXIT_FAILURE);
  }
  return time / static_cast<double>(count);
}

}  // namespace vllm_metrics::bench
