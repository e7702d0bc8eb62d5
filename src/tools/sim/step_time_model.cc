#include "src/tools/sim/step_time_model.h"

#include <algorithm>
#include <cmath>

namespace vllm_metrics::sim {

std::int64_t Hardware::num_gpu_blocks(std::int64_t block_size) const {
  const double free_bytes = memory_bytes * memory_fraction -
                            parameters * weight_bytes - activation_bytes;
  const double block_bytes =
      kv_bytes_per_token() * static_cast<double>(block_size);
  return static_cast<std::int64_t>(std::floor(free_bytes / block_bytes));
}

void StepShape::add(std::int64_t n, std::int64_t computed) {
  const double count = static_cast<double>(n);
  ++sequences;
  tokens += n;
  context_tokens += computed + n;
  attended_pairs +=
      count * (static_cast<double>(computed) + (count + 1.0) / 2.0);
}

Ticks step_duration(const Hardware& hardware, const StepShape& shape) {
  // A multiply and an add for each weight and token; for each pair that
  // attends, the same for the query-key and for the weight-value product.
  const double flops =
      2.0 * hardware.parameters * static_cast<double>(shape.tokens) +
      4.0 * hardware.layers * hardware.query_heads * hardware.head_size *
          shape.attended_pairs;
  const double bytes =
      hardware.parameters * hardware.weight_bytes +
      hardware.kv_bytes_per_token() * static_cast<double>(shape.context_tokens);
  const double compute =
      flops / (hardware.peak_flops * hardware.compute_efficiency);
  const double memory =
      bytes / (hardware.memory_bandwidth * hardware.bandwidth_efficiency);
  const double overhead =
      hardware.step_overhead +
      hardware.sequence_overhead * static_cast<double>(shape.sequences);
  return std::max<Ticks>(1, to_ticks(overhead + std::max(compute, memory)));
}

}  // namespace vllm_metrics::sim
