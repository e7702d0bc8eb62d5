// The request-level path of a decode step, beside the least that an output
// comes to.

#include <benchmark/benchmark.h>

#include <cstddef>

#include "floor.h"
#include "outputs.h"

namespace vllm_metrics::bench {
namespace {

std::size_t requests_of(const benchmark::State& state) {
  return static_cast<std::size_t>(state.range(0));
}

void BM_IterationStats_UpdateFromOutput(benchmark::State& state) {
  Outputs outputs(requests_of(state));
  for (auto _ : state) outputs.step_one_by_one();
}
BENCHMARK(BM_IterationStats_UpdateFromOutput)
    ->ArgName("requests")
    ->Arg(256)
    ->Arg(1024);

void BM_IterationStats_UpdateFromOutputs(benchmark::State& state) {
  Outputs outputs(requests_of(state));
  for (auto _ : state) outputs.step();
}
BENCHMARK(BM_IterationStats_UpdateFromOutputs)
    ->ArgName("requests")
    ->Arg(256)
    ->Arg(1024);

void BM_Floor_UpdateFromOutputs(benchmark::State& state) {
  FloorRequests floor(requests_of(state));
  double now = 1000.0;
  for (auto _ : state) {
    floor.update(now += 0.02);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(BM_Floor_UpdateFromOutputs)->ArgName("requests")->Arg(256)->Arg(1024);

}  // namespace
}  // namespace vllm_metrics::bench
