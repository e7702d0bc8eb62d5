// What the hooks of a KV block pool cost for blocks that are not sampled,
// which is nearly all of them. The baseline is a test of one bit for each.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <vector>

#include "vllm_metrics/stats/kv_residency_sampler.h"

namespace vllm_metrics {
namespace {

constexpr std::int64_t kNumBlocks = 65536;
constexpr std::size_t kBatch = 4096;

std::vector<std::int64_t> random_blocks() {
  std::mt19937 random(1);
  std::vector<std::int64_t> blocks(kBatch);
  for (std::int64_t& block : blocks) {
    block = static_cast<std::int64_t>(random() % kNumBlocks);
  }
  return blocks;
}

// Samples nothing in practice; each hook takes its usual way.
KvResidencySampler unsampled() {
  return *KvResidencySampler::create(
      {.num_blocks = kNumBlocks, .sample_rate = 1e-18});
}

template <class Hook>
void run(benchmark::State& state, Hook hook) {
  const std::vector<std::int64_t> blocks = random_blocks();
  for (auto _ : state) {
    for (const std::int64_t block : blocks) hook(block);
  }
  state.SetItemsProcessed(state.iterations() *
                          static_cast<std::int64_t>(kBatch));
}

void BM_BitTest(benchmark::State& state) {
  const std::vector<std::uint64_t> bits(kNumBlocks / 64);
  std::int64_t hits = 0;
  run(state, [&](std::int64_t block) {
    const auto id = static_cast<std::uint64_t>(block);
    if (((bits[id / 64] >> (id % 64)) & 1) != 0) ++hits;
    benchmark::DoNotOptimize(hits);
  });
}
BENCHMARK(BM_BitTest);

void BM_KvResidencySampler_Access(benchmark::State& state) {
  KvResidencySampler sampler = unsampled();
  run(state, [&](std::int64_t block) {
    sampler.on_accessed(block, 1);
    benchmark::DoNotOptimize(sampler);
  });
}
BENCHMARK(BM_KvResidencySampler_Access);

void BM_KvResidencySampler_Evict(benchmark::State& state) {
  KvResidencySampler sampler = unsampled();
  run(state, [&](std::int64_t block) {
    sampler.on_evicted(block, 1);
    benchmark::DoNotOptimize(sampler);
  });
}
BENCHMARK(BM_KvResidencySampler_Evict);

void BM_KvResidencySampler_Allocate(benchmark::State& state) {
  KvResidencySampler sampler = unsampled();
  run(state, [&](std::int64_t block) {
    sampler.on_allocated(block, 1);
    benchmark::DoNotOptimize(sampler);
  });
}
BENCHMARK(BM_KvResidencySampler_Allocate);

}  // namespace
}  // namespace vllm_metrics
