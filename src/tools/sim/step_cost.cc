#include "src/tools/sim/step_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

namespace vllm_metrics::sim {
namespace {

bool starts_with_any(std::string_view text,
                     std::initializer_list<std::string_view> beginnings) {
  return std::any_of(
      beginnings.begin(), beginnings.end(),
      [text](std::string_view b) { return text.starts_with(b); });
}

double model_number_bytes(const ModelShape& shape) {
  return shape.dtype.starts_with("float32") || shape.dtype == "float" ? 4.0
                                                                      : 2.0;
}

double cache_number_bytes(const ModelShape& shape) {
  if (shape.cache_dtype == "auto") return model_number_bytes(shape);
  return shape.cache_dtype == "nvfp4" ? 0.5 : 1.0;
}

// Numbers that a GPU caches for each token.
double cached_numbers_per_token(const ModelShape& shape) {
  const auto layers = static_cast<double>(std::max<std::int64_t>(
      1, shape.num_hidden_layers / shape.pipeline_parallel_size));
  if (shape.mla.has_value()) {
    return layers * static_cast<double>(shape.mla->kv_lora_rank +
                                        shape.mla->qk_rope_head_dim);
  }
  const auto heads = static_cast<double>(std::max<std::int64_t>(
      1, shape.num_kv_heads / shape.tensor_parallel_size));
  return 2.0 * layers * heads * static_cast<double>(shape.head_dim);
}

// What a step reads whatever its tokens, with all experts at work. Reads grow
// evenly with the tokens of one prompt once there are enough for all experts,
// so two estimates tell the constant part: the weights.
double weight_bytes_of(const PerfModel& perf, const ModelShape& shape) {
  constexpr std::int64_t kMany = 1 << 20;
  const auto read = [&perf](std::int64_t tokens) {
    const ScheduledRequest request = {.num_scheduled_tokens = tokens,
                                      .is_new = true};
    return perf.estimate(std::span(&request, 1)).num_read_bytes_per_gpu;
  };
  // Tokens are looked up in a table of their own, which no estimate reads.
  const double embedding = static_cast<double>(shape.vocab_size) *
                           static_cast<double>(shape.hidden_size) *
                           model_number_bytes(shape) /
                           static_cast<double>(shape.tensor_parallel_size);
  return 2.0 * read(kMany) - read(2 * kMany) + embedding;
}

ModelShape shape_of(const EngineParameters& engine) {
  ModelShape shape = engine.shape;
  shape.cache_dtype = engine.kv_cache_dtype;
  if (engine.quantization != "model") {
    shape.quantization =
        engine.quantization == "none" ? "" : engine.quantization;
  }
  shape.tensor_parallel_size = engine.tensor_parallel_size;
  shape.enable_expert_parallel = engine.enable_expert_parallel;
  // Ranks share the experts; of a dense model each has its own.
  if (shape.num_moe_layers > 0) shape.data_parallel_size = engine.engines;
  return shape;
}

}  // namespace

absl::StatusOr<StepCostModel> StepCostModel::create(
    const EngineParameters& engine) {
  const DevicePeaks* device = find_device_peaks(engine.device);
  if (device == nullptr) {
    return absl::InvalidArgumentError(fmt::format(
        "device = {}; allowed: a name of the table", engine.device));
  }
  std::string error;
  auto perf = PerfModel::create(shape_of(engine), &error);
  if (!perf.has_value()) {
    return absl::InvalidArgumentError(
        fmt::format("model = {}: {}", engine.model, error));
  }
  if (!perf->has_attention() || !perf->has_feed_forward()) {
    return absl::InvalidArgumentError(
        fmt::format("model = {}: {}", engine.model,
                    perf->warning().empty() ? "its layers have no estimate"
                                            : perf->warning()));
  }
  StepCostModel cost(engine, *device, *std::move(perf));
  if (cost.num_gpu_blocks_ <= 0 && !engine.num_gpu_blocks.has_value()) {
    return absl::InvalidArgumentError(fmt::format(
        "gpu-memory-utilization = {}: of the {:g} GB of a {} that is less than "
        "{:.1f} GB of weights, {:g} GB for activations and a KV block; "
        "allowed: more of it, a larger device, a smaller model or more "
        "tensor-parallel GPUs",
        engine.gpu_memory_utilization, device->memory_gigabytes, device->name,
        cost.weight_bytes_ / 1e9, kActivationBytes / 1e9));
  }
  return cost;
}

StepCostModel::StepCostModel(const EngineParameters& engine,
                             const DevicePeaks& device, PerfModel perf)
    : device_(&device), perf_(std::move(perf)) {
  const ModelShape shape = shape_of(engine);
  const bool in_8_bits = starts_with_any(
      shape.quantization, {"fp8", "fbgemm_fp8", "ptpc_fp8", "modelopt"});
  flops_ = kComputeEfficiency *
           peak_flops(device, in_8_bits ? MatrixPrecision::kFp8
                                        : MatrixPrecision::kBf16);
  bandwidth_ = kBandwidthEfficiency * 1e9 * device.memory_gigabytes_per_s;
  weight_bytes_ = weight_bytes_of(perf_, shape);

  overhead_ = kStepOverhead + (engine.enforce_eager ? kEagerOverhead : 0.0) +
              static_cast<double>(engine.speculative_tokens) * kDraftWeights *
                  weight_bytes_ / bandwidth_;
  if (shape.tensor_parallel_size > 1) {
    const double reduces = 2.0 * static_cast<double>(shape.num_hidden_layers);
    const auto gpus = static_cast<double>(shape.tensor_parallel_size);
    reduce_latency_ = reduces * kReduceLatency;
    // A ring: every GPU sends all of the vector twice, but for its own share.
    reduce_seconds_per_token_ = reduces * 2.0 * (gpus - 1.0) / gpus *
                                static_cast<double>(shape.hidden_size) *
                                model_number_bytes(shape) / kReduceBandwidth;
  }

  const double numbers = cached_numbers_per_token(shape);
  const double bytes = cache_number_bytes(shape);
  kv_bytes_per_block_ =
      numbers * bytes * static_cast<double>(engine.block_size);
  if (shape.cache_dtype == "nvfp4") {
    overestimated_bytes_per_context_token_ = numbers * (1.0 - bytes);
  }
  const double usable =
      1e9 * device.memory_gigabytes * engine.gpu_memory_utilization;
  const double fitting = std::floor(
      (usable - weight_bytes_ - kActivationBytes) / kv_bytes_per_block_);
  constexpr double kMostBlocks = 1e8;
  num_gpu_blocks_ = engine.num_gpu_blocks.value_or(
      static_cast<std::int64_t>(std::clamp(fitting, 0.0, kMostBlocks)));
  used_memory_bytes_ = std::min(usable, 1e9 * device.memory_gigabytes);
}

StepCost StepCostModel::cost_of(
    std::span<const ScheduledRequest> requests) const {
  PerfContext context;
  for (const ScheduledRequest& request : requests) context.add(request);
  StepCost cost;
  cost.work = perf_.estimate(context);
  const double bytes = cost.work.num_read_bytes_per_gpu +
                       cost.work.num_write_bytes_per_gpu -
                       overestimated_bytes_per_context_token_ *
                           static_cast<double>(context.decode_context_len);
  cost.compute = cost.work.num_flops_per_gpu / flops_;
  cost.memory = bytes / bandwidth_;
  cost.duration =
      overhead_ + kSequenceOverhead * static_cast<double>(requests.size()) +
      reduce_latency_ +
      reduce_seconds_per_token_ * static_cast<double>(context.num_tokens()) +
      std::max(cost.compute, cost.memory);
  return cost;
}

}  // namespace vllm_metrics::sim
