#pragma once

#include <cstdint>

#include "src/tools/sim/virtual_time.h"

namespace vllm_metrics::sim {

// The figures a step's duration is computed from: an 8B model in bf16 (the
// shape of Llama 3.1 8B) on one 80 GB accelerator (the data sheet of an
// H100 SXM, dense bf16), at efficiencies that are usual for serving.
struct Hardware {
  double peak_flops = 989e12;         // per second
  double compute_efficiency = 0.55;   // of it, reached by a step's matmuls
  double memory_bandwidth = 3.35e12;  // bytes per second
  double bandwidth_efficiency = 0.8;  // of it, reached when streaming
  double memory_bytes = 80e9;
  double memory_fraction = 0.9;     // of it, for this engine
  double activation_bytes = 4e9;    // kept free for a step's activations
  double step_overhead = 0.0015;    // seconds: scheduling, launches, sampling
  double sequence_overhead = 4e-6;  // seconds for each request of the step
  double front_end_delay = 0.001;   // seconds: tokenising, on the way in

  double parameters = 8.03e9;
  double weight_bytes = 2.0;  // per parameter
  double cache_bytes = 2.0;   // per value in the KV cache
  double layers = 32;
  double query_heads = 32;
  double kv_heads = 8;
  double head_size = 128;

  double kv_bytes_per_token() const {
    return 2.0 * layers * kv_heads * head_size * cache_bytes;
  }

  // How many KV blocks fit beside weights and activations.
  std::int64_t num_gpu_blocks(std::int64_t block_size) const;
};

// What a step computes, summed over its requests.
struct StepShape {
  std::int64_t sequences = 0;
  std::int64_t tokens = 0;          // computed
  std::int64_t context_tokens = 0;  // read from the KV cache
  double attended_pairs = 0.0;      // (computed token, token it attends to)

  // A request that computes `n` tokens behind `computed` others.
  void add(std::int64_t n, std::int64_t computed);
};

// A roofline: a fixed overhead, then arithmetic or memory, whichever takes
// longer. Never less than one tick.
Ticks step_duration(const Hardware& hardware, const StepShape& shape);

}  // namespace vllm_metrics::sim
