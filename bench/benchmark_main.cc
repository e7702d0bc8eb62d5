#include <benchmark/benchmark.h>

#include "second_thread.h"

int main(int argc, char** argv) {
  const vllm_metrics::bench::SecondThread second_thread;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
