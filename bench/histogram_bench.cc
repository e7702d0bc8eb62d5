// Stand-alone metrics, any thread, one call for each value; and a histogram of
// a bank, whose section is opened once for a step.

#include <benchmark/benchmark.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "floor.h"
#include "step_data.h"
#include "vllm_metrics/catalogue/catalogue.h"
#include "vllm_metrics/primitives/bank.h"
#include "vllm_metrics/primitives/counter.h"
#include "vllm_metrics/primitives/gauge.h"
#include "vllm_metrics/primitives/histogram.h"

namespace vllm_metrics::bench {
namespace {

std::span<const double> bounds() {
  return spec_of(MetricId::kInterTokenLatency).buckets;
}

const BucketBounds& bucket_bounds() {
  static const BucketBounds made = *BucketBounds::create(bounds());
  return made;
}

// Some thousand latencies.
const std::vector<double>& latencies() {
  static const auto made = [] {
    std::vector<double> all;
    for (const Step& step : make_steps({})) {
      const auto some = step.flat.latencies.first(16);
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }();
  return made;
}

void BM_Counter_Inc(benchmark::State& state) {
  static Counter counter;
  for (auto _ : state) counter.inc();
}
BENCHMARK(BM_Counter_Inc)->ThreadRange(1, 2)->UseRealTime();

void BM_RelaxedAdd_Inc(benchmark::State& state) {
  static std::atomic<std::uint64_t> counter;
  for (auto _ : state) counter.fetch_add(1, std::memory_order_relaxed);
}
BENCHMARK(BM_RelaxedAdd_Inc)->ThreadRange(1, 2)->UseRealTime();

void BM_PrometheusCppCounter_Inc(benchmark::State& state) {
  static prometheus::Counter counter;
  for (auto _ : state) counter.Increment();
}
BENCHMARK(BM_PrometheusCppCounter_Inc)->ThreadRange(1, 2)->UseRealTime();

void BM_Gauge_Set(benchmark::State& state) {
  static Gauge gauge;
  double value = 0.0;
  for (auto _ : state) gauge.set(value += 1.0);
}
BENCHMARK(BM_Gauge_Set)->ThreadRange(1, 2)->UseRealTime();

void BM_PrometheusCppGauge_Set(benchmark::State& state) {
  static prometheus::Gauge gauge;
  double value = 0.0;
  for (auto _ : state) gauge.Set(value += 1.0);
}
BENCHMARK(BM_PrometheusCppGauge_Set)->ThreadRange(1, 2)->UseRealTime();

void BM_FloorHistogram_Observe(benchmark::State& state) {
  FloorHistogram histogram(MetricId::kInterTokenLatency);
  Carousel carousel(latencies());
  for (auto _ : state) {
    histogram.observe(carousel.next());
    benchmark::ClobberMemory();
  }
}
BENCHMARK(BM_FloorHistogram_Observe);

void BM_Histogram_Observe(benchmark::State& state) {
  static Histogram histogram(bucket_bounds());
  Carousel carousel(latencies());
  for (auto _ : state) histogram.observe(carousel.next());
}
BENCHMARK(BM_Histogram_Observe)->ThreadRange(1, 2)->UseRealTime();

void BM_PrometheusCppHistogram_Observe(benchmark::State& state) {
  static prometheus::Histogram histogram(
      prometheus::Histogram::BucketBoundaries(bounds().begin(),
                                              bounds().end()));
  Carousel carousel(latencies());
  for (auto _ : state) histogram.Observe(carousel.next());
}
BENCHMARK(BM_PrometheusCppHistogram_Observe)->ThreadRange(1, 2)->UseRealTime();

void BM_Histogram_ObserveAll(benchmark::State& state) {
  Histogram histogram(bucket_bounds());
  const std::span values(latencies());
  const auto batch = static_cast<std::size_t>(state.range(0));
  for (auto _ : state) histogram.observe(values.first(batch));
}
BENCHMARK(BM_Histogram_ObserveAll)->ArgName("batch")->Arg(256);

// One section around all, as record() does it.
void BM_BankHistogram_Observe(benchmark::State& state) {
  const HistogramCells cells{0, &bucket_bounds()};
  const std::size_t count = bucket_bounds().bucket_count() + 1;
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> memory(Bank::size_bytes(count) / sizeof(Line) + 1);
  const Bank bank = Bank::create(memory.data(), count);
  Carousel carousel(latencies());
  Bank::Section section(bank, 0.0);
  for (auto _ : state) section.observe(cells, carousel.next());
}
BENCHMARK(BM_BankHistogram_Observe);

}  // namespace
}  // namespace vllm_metrics::bench
