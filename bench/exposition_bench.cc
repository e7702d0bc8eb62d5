// Reading a registry and writing the page, beside a memcpy of the page's size
// and prometheus-cpp's page of the same series; and parsing it, beside a copy
// and a search for the ends of its lines.

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstring>
#include <string>

#include "page_under_test.h"
#include "vllm_metrics/exposition/text_format.h"
#include "vllm_metrics/exposition/text_parser.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics::bench {
namespace {

std::size_t engines_of(const benchmark::State& state) {
  return static_cast<std::size_t>(state.range(0));
}

void engines(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("engines")->Arg(1)->Arg(8)->Arg(64);
  benchmark->Unit(benchmark::kMicrosecond);
}

void report(benchmark::State& state, std::size_t page_size) {
  state.SetBytesProcessed(state.iterations() *
                          static_cast<std::int64_t>(page_size));
}

void BM_Registry_Snapshot(benchmark::State& state) {
  const PageUnderTest page(engines_of(state));
  Snapshot snapshot;
  for (auto _ : state) page.registry().snapshot(snapshot);
}
BENCHMARK(BM_Registry_Snapshot)->Apply(engines);

void BM_TextFormat_Render(benchmark::State& state) {
  const PageUnderTest page(engines_of(state));
  TextFormat format;
  for (auto _ : state) format.render(page.registry());
  report(state, page.text().size());
}
BENCHMARK(BM_TextFormat_Render)->Apply(engines);

void BM_Memcpy_Page(benchmark::State& state) {
  const PageUnderTest page(engines_of(state));
  std::string copy = page.text();
  for (auto _ : state) {
    std::memcpy(copy.data(), page.text().data(), copy.size());
    benchmark::ClobberMemory();
  }
  report(state, copy.size());
}
BENCHMARK(BM_Memcpy_Page)->Apply(engines);

void BM_Parser_Page(benchmark::State& state) {
  const PageUnderTest page(engines_of(state));
  for (auto _ : state) benchmark::DoNotOptimize(parse_page(page.text()));
  report(state, page.text().size());
}
BENCHMARK(BM_Parser_Page)->Apply(engines);

void BM_Scan_Page(benchmark::State& state) {
  const PageUnderTest page(engines_of(state));
  std::string copy = page.text();
  for (auto _ : state)
    benchmark::DoNotOptimize(copy_and_count_lines(page.text(), copy));
  report(state, copy.size());
}
BENCHMARK(BM_Scan_Page)->Apply(engines);

void BM_PrometheusCpp_Serialize(benchmark::State& state) {
  const PageUnderTest page(engines_of(state));
  std::size_t size = 0;
  for (auto _ : state) size = page.prometheus_cpp().text().size();
  report(state, size);
}
BENCHMARK(BM_PrometheusCpp_Serialize)->Apply(engines);

}  // namespace
}  // namespace vllm_metrics::bench
