// Threads that record at once, and steps while another thread scrapes.

#include <benchmark/benchmark.h>

#include <cstddef>

#include "engines.h"
#include "scraped_step.h"
#include "step_data.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"

namespace vllm_metrics::bench {
namespace {

// `engines` 1: both threads record for one engine; 2: an engine each.
void BM_Manager_RecordByThreads(benchmark::State& state) {
  static const auto steps = make_steps({});
  static const auto manager = make_manager(prometheus_only(2));
  const auto engine = static_cast<std::size_t>(state.thread_index()) %
                      static_cast<std::size_t>(state.range(0));
  Carousel carousel(steps);
  for (auto _ : state) record(*manager, carousel.next(), engine);
}
BENCHMARK(BM_Manager_RecordByThreads)
    ->ArgName("engines")
    ->Arg(1)
    ->Arg(2)
    ->ThreadRange(1, 2)
    ->UseRealTime();

// The time of an iteration says nothing here; the counters are in nanoseconds.
void BM_Manager_RecordWhileScraped(benchmark::State& state) {
  ScrapedStep times;
  for (auto _ : state) times = time_scraped_step(20'000);
  state.counters["idle_p50"] = times.idle_p50;
  state.counters["idle_p99"] = times.idle_p99;
  state.counters["scraped_p50"] = times.scraped_p50;
  state.counters["scraped_p99"] = times.scraped_p99;
  state.counters["scrapes_per_second"] = times.scrapes_per_second;
}
BENCHMARK(BM_Manager_RecordWhileScraped)->Iterations(1)->UseRealTime();

}  // namespace
}  // namespace vllm_metrics::bench
