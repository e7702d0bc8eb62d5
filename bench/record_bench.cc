// StatLoggerManager::record() by one thread, beside what the machine allows and
// what prometheus-cpp takes for the same observations.

#include <benchmark/benchmark.h>

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "engines.h"
#include "floor.h"
#include "step_data.h"
#include "vllm_metrics/loggers/stat_logger.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics::bench {
namespace {

StepShape shape_of(const benchmark::State& state) {
  return {.batch = static_cast<std::size_t>(state.range(0)),
          .equal = state.range(1) != 0,
          .first_outputs = static_cast<std::size_t>(state.range(2))};
}

// 256 requests that decode, distinct and equal latencies; fewer and more; and a
// step with as many first outputs as later ones.
void shapes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"batch", "equal", "first"});
  benchmark->Args({256, 0, 0})
      ->Args({256, 1, 0})
      ->Args({1, 0, 0})
      ->Args({1024, 0, 0})
      ->Args({4096, 0, 0})
      ->Args({64, 0, 64});
}

void BM_Manager_Record(benchmark::State& state) {
  const auto steps = make_steps(shape_of(state));
  const auto manager = make_manager(prometheus_only(1));
  Carousel carousel(steps);
  for (auto _ : state) record(*manager, carousel.next());
}
BENCHMARK(BM_Manager_Record)->Apply(shapes);

void BM_Floor_Record(benchmark::State& state) {
  const auto steps = make_steps(shape_of(state));
  Floor floor;
  Carousel carousel(steps);
  for (auto _ : state) {
    const Step& step = carousel.next();
    floor.record(step.scheduler, step.iteration);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(BM_Floor_Record)->Apply(shapes);

std::unique_ptr<PrometheusCppPage> make_prometheus_cpp() {
  const auto manager = make_manager(prometheus_only(1));
  Snapshot snapshot;
  manager->registry()->snapshot(snapshot);
  return std::make_unique<PrometheusCppPage>(*snapshot.schema, 1);
}

void BM_PrometheusCpp_Record(benchmark::State& state) {
  const auto steps = make_steps(shape_of(state));
  const auto page = make_prometheus_cpp();
  Carousel carousel(steps);
  for (auto _ : state) page->record(carousel.next().flat);
}
BENCHMARK(BM_PrometheusCpp_Record)->Apply(shapes);

void BM_PrometheusCpp_RecordBatched(benchmark::State& state) {
  const auto steps = make_steps(shape_of(state));
  const auto page = make_prometheus_cpp();
  Carousel carousel(steps);
  for (auto _ : state) page->record_batched(carousel.next().flat);
}
BENCHMARK(BM_PrometheusCpp_RecordBatched)->Apply(shapes);

// Each step goes to the next engine, so that no bank stays in the near caches.
void BM_Manager_RecordRoundRobin(benchmark::State& state) {
  const auto steps = make_steps({});
  const auto engines = static_cast<std::size_t>(state.range(0));
  const auto manager = make_manager(prometheus_only(engines));
  Carousel carousel(steps);
  std::size_t engine = 0;
  for (auto _ : state) {
    record(*manager, carousel.next(), engine);
    engine = engine + 1 == engines ? 0 : engine + 1;
  }
}
BENCHMARK(BM_Manager_RecordRoundRobin)
    ->ArgName("engines")
    ->Arg(1)
    ->Arg(8)
    ->Arg(64)
    ->Arg(512);

class TokenCount final : public StatLoggerBase {
 public:
  std::string_view name() const override { return "token_count"; }
  void record(const StepRecord& step) override {
    if (step.iteration != nullptr)
      tokens_ += step.iteration->num_generation_tokens;
  }

 private:
  std::int64_t tokens_ = 0;
};

// The text logger and a small one of the user's own beside the page.
void BM_Manager_RecordAllLoggers(benchmark::State& state) {
  const auto steps = make_steps({});
  StatLoggerOptions options = prometheus_only(1);
  options.default_loggers = true;
  options.factories = {AggregateStatLoggerFactory(
      [](const StatLoggerOptions&)
          -> absl::StatusOr<std::unique_ptr<StatLoggerBase>> {
        return std::make_unique<TokenCount>();
      })};
  const auto manager = make_manager(std::move(options));
  Carousel carousel(steps);
  for (auto _ : state) record(*manager, carousel.next());
}
BENCHMARK(BM_Manager_RecordAllLoggers);

}  // namespace
}  // namespace vllm_metrics::bench
