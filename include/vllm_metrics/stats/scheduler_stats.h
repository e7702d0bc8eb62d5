#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "vllm_metrics/stats/cache_stats.h"
#include "vllm_metrics/stats/cuda_graph_stats.h"
#include "vllm_metrics/stats/iteration_details.h"
#include "vllm_metrics/stats/kv_cache_stats.h"
#include "vllm_metrics/stats/kv_connector_stats.h"
#include "vllm_metrics/stats/lora_stats.h"
#include "vllm_metrics/stats/perf_stats.h"
#include "vllm_metrics/stats/spec_decoding_stats.h"

namespace vllm_metrics::inline v0 {

// Requests whose KV a connector brings from elsewhere, none of them running, by
// how far that is. They are among the waiting ones, too.
struct KvFetchStages {
  std::int64_t waiting_to_start = 0;
  std::int64_t in_progress = 0;
  std::int64_t completed_waiting = 0;  // it is there; they wait to run
};

// What a scheduler knows after one step: states are as of now, cache and perf
// figures are deltas of this step. Refill and reuse one struct.
// Definition: vLLM SchedulerStats. vLLM v1/metrics/stats.py.
struct SchedulerStats {
  std::int64_t num_running_reqs = 0;  // requests in the batch
  // Queued: no slot, budget or KV blocks (reason "capacity").
  std::int64_t num_waiting_reqs = 0;
  // Queued and passed over for now (reason "deferred").
  std::int64_t num_skipped_waiting_reqs = 0;

  // Data-parallel load balancing only; feeds no metric.
  std::int64_t step_counter = 0;
  std::int64_t current_wave = 0;  // likewise

  double kv_cache_usage = 0.0;  // fraction of KV blocks in use, 0..1

  PrefixCacheStats prefix_cache_stats = {};
  // Tokens found outside, by a KV connector.
  std::optional<PrefixCacheStats> connector_prefix_cache_stats = {};
  // Blocks evicted in this step, when sampled.
  std::vector<KvCacheEvictionEvent> kv_cache_eviction_events = {};
  std::optional<SpecDecodingStats> spec_decoding_stats = {};
  // What the KV connector did; the engine's, until record() returns.
  const KvConnectorStats* kv_connector_stats = nullptr;
  // Filled by LoraRequestStates::update().
  std::vector<LoraAdapterCount> waiting_lora_adapters = {};
  std::vector<LoraAdapterCount> running_lora_adapters = {};
  // How the step was padded and run, with CUDA graphs.
  std::optional<CudaGraphStat> cudagraph_stats = {};
  // When the engine estimates its work.
  std::optional<PerfStats> perf_stats = {};
  // For the text record of each step, when that is wanted.
  std::optional<IterationDetails> iteration_details = {};
  // Evictions that the sampler could not keep, by KvResidencySampler::drain().
  std::int64_t num_dropped_eviction_events = 0;
  KvFetchStages kv_fetch_stages = {};
};

}  // namespace vllm_metrics::inline v0
