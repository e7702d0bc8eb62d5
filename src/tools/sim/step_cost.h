#pragma once

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "src/tools/sim/parameters.h"
#include "vllm_metrics/stats/device_peaks.h"
#include "vllm_metrics/stats/perf_context.h"
#include "vllm_metrics/stats/perf_model.h"

namespace vllm_metrics::sim {

// What a step costs, in seconds but for the work itself.
struct StepCost {
  PerfStats work;         // of one GPU
  double compute = 0.0;   // its arithmetic
  double memory = 0.0;    // its reads and writes
  double duration = 0.0;  // the longer of them, and what comes on top
};

// How long a step takes on one device, as its roofline has it: the work that
// PerfModel estimates, at the share of the device's peaks that kernels reach,
// and overheads. Also how much KV cache the memory holds.
//
// Thread-safety: const after construction.
class StepCostModel {
 public:
  // Errors: InvalidArgument for a model that cannot be estimated, or whose
  // weights leave no room for a KV cache.
  static absl::StatusOr<StepCostModel> create(const EngineParameters& engine);

  StepCost cost_of(std::span<const ScheduledRequest> requests) const;

  // KV blocks of one engine: as asked for, or what fits beside the weights.
  std::int64_t num_gpu_blocks() const { return num_gpu_blocks_; }
  double kv_bytes_per_block() const { return kv_bytes_per_block_; }
  double weight_bytes() const { return weight_bytes_; }  // of one GPU
  const DevicePeaks& device() const { return *device_; }
  double used_memory_bytes() const { return used_memory_bytes_; }

  // Of the data sheet's peak, reached by a step's kernels.
  static constexpr double kComputeEfficiency = 0.55;
  static constexpr double kBandwidthEfficiency = 0.8;

  static constexpr double kActivationBytes = 4e9;    // kept free for a step
  static constexpr double kStepOverhead = 0.0015;    // seconds
  static constexpr double kEagerOverhead = 0.003;    // without CUDA graphs
  static constexpr double kSequenceOverhead = 4e-6;  // a request of the step
  // A draft model reads this part of what the model's weights are, for each
  // token that it drafts.
  static constexpr double kDraftWeights = 0.03;
  // Two all-reduces in each layer, between tensor-parallel GPUs.
  static constexpr double kReduceLatency = 8e-6;     // seconds
  static constexpr double kReduceBandwidth = 450e9;  // bytes a second

 private:
  StepCostModel(const EngineParameters& engine, const DevicePeaks& device,
                PerfModel perf);

  const DevicePeaks* device_;
  PerfModel perf_;
  double flops_ = 0.0;      // a second, reached
  double bandwidth_ = 0.0;  // bytes a second, reached
  double overhead_ = 0.0;   // of each step
  double reduce_latency_ = 0.0;
  double reduce_seconds_per_token_ = 0.0;
  double weight_bytes_ = 0.0;
  double kv_bytes_per_block_ = 0.0;
  // What PerfModel reads too much for each token of context: it counts a byte
  // for every packed kind of cache.
  double overestimated_bytes_per_context_token_ = 0.0;
  double used_memory_bytes_ = 0.0;
  std::int64_t num_gpu_blocks_ = 0;
};

}  // namespace vllm_metrics::sim
