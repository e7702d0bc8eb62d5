#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "src/tools/sim/step_cost.h"

namespace vllm_metrics::sim {
namespace {

// `requests` of them, each with `n` tokens behind `computed` others.
StepCost cost_of(const EngineParameters& engine, std::size_t requests,
                 std::int64_t n, std::int64_t computed) {
  const std::vector<ScheduledRequest> step(
      requests, {.num_scheduled_tokens = n, .num_computed_tokens = computed});
  return StepCostModel::create(engine)->cost_of(step);
}

template <class Change>
EngineParameters with(Change change) {
  EngineParameters engine;
  change(engine);
  return engine;
}

TEST_CASE("StepCostModel: a step is what the roofline allows", "[tools]") {
  const EngineParameters engine;
  const auto seconds = [&engine](std::size_t requests, std::int64_t n,
                                 std::int64_t computed) {
    return cost_of(engine, requests, n, computed).duration;
  };
  CHECK(seconds(1, 1, 100) == Approx(0.0071).epsilon(0.05));
  CHECK(seconds(64, 1, 100) < 1.5 * seconds(1, 1, 100));
  CHECK(seconds(1, 1, 100000) > 1.3 * seconds(1, 1, 100));
  CHECK(seconds(1, 8192, 0) == Approx(0.28).epsilon(0.1));
  CHECK(seconds(1, 8192, 8192) > 1.1 * seconds(1, 8192, 0));

  const StepCost decode = cost_of(engine, 64, 1, 4000);
  CHECK(decode.memory > 4.0 * decode.compute);
  const StepCost prefill = cost_of(engine, 1, 8192, 0);
  CHECK(prefill.compute > 4.0 * prefill.memory);
}

TEST_CASE("StepCostModel: memory beside the weights is KV blocks", "[tools]") {
  const StepCostModel cost = *StepCostModel::create({});
  // 8.03e9 parameters in bf16.
  CHECK(cost.weight_bytes() == Approx(16.06e9).epsilon(0.01));
  CHECK(cost.kv_bytes_per_block() == 2097152.0);
  CHECK(cost.num_gpu_blocks() == Approx(24766).epsilon(0.01));

  const auto blocks = [](auto change) {
    return StepCostModel::create(with(change))->num_gpu_blocks();
  };
  const std::int64_t preset = cost.num_gpu_blocks();
  CHECK(blocks([](EngineParameters& e) { e.kv_cache_dtype = "fp8"; }) ==
        Approx(2 * preset).epsilon(1e-3));
  CHECK(blocks([](EngineParameters& e) { e.kv_cache_dtype = "nvfp4"; }) ==
        Approx(4 * preset).epsilon(1e-3));
  CHECK(blocks([](EngineParameters& e) { e.block_size = 32; }) ==
        Approx(preset / 2).epsilon(1e-3));
  CHECK(blocks([](EngineParameters& e) { e.gpu_memory_utilization = 0.5; }) <
        preset / 2);
  CHECK(blocks([](EngineParameters& e) { e.device = "H200 SXM"; }) >
        2 * preset);
  CHECK(blocks([](EngineParameters& e) { e.tensor_parallel_size = 2; }) >
        2 * preset);
  CHECK(blocks([](EngineParameters& e) { e.num_gpu_blocks = 77; }) == 77);
}

TEST_CASE("StepCostModel: latencies answer to parameters", "[tools]") {
  const auto decode = [](auto change) {
    return cost_of(with(change), 64, 1, 8000).duration;
  };
  const double preset = decode([](EngineParameters&) {});
  CHECK(decode([](EngineParameters& e) { e.kv_cache_dtype = "fp8"; }) <
        0.7 * preset);
  CHECK(decode([](EngineParameters& e) { e.device = "H200 SXM"; }) <
        0.8 * preset);
  CHECK(decode([](EngineParameters& e) { e.tensor_parallel_size = 2; }) <
        0.7 * preset);
  CHECK(decode([](EngineParameters& e) { e.quantization = "fp8"; }) < preset);
  CHECK(decode([](EngineParameters& e) { e.speculative_tokens = 3; }) > preset);
  // At a small batch a step without CUDA graphs is 30 to 50 % longer.
  const double small = cost_of({}, 4, 1, 500).duration;
  const double eager =
      cost_of(with([](EngineParameters& e) { e.enforce_eager = true; }), 4, 1,
              500)
          .duration;
  CHECK(eager > 1.3 * small);
  CHECK(eager < 1.5 * small);
}

TEST_CASE("StepCostModel: all experts' weights are held", "[tools]") {
  EngineParameters engine;
  engine.tensor_parallel_size = 1;
  REQUIRE(choose_model("moe-30b", engine).ok());
  engine.device = "H200 SXM";
  // 30.5e9 parameters in bf16.
  CHECK(StepCostModel::create(engine)->weight_bytes() ==
        Approx(61e9).epsilon(0.02));
  // A decode of one request reads those of 8 experts only.
  CHECK(cost_of(engine, 1, 1, 100).duration < 0.005);
}

TEST_CASE("StepCostModel: a model that does not fit says so", "[tools]") {
  EngineParameters engine;
  REQUIRE(choose_model("dense-70b", engine).ok());
  const auto refused = StepCostModel::create(engine);
  REQUIRE_FALSE(refused.ok());
  CHECK(std::string(refused.status().message()) ==
        "gpu-memory-utilization = 0.9: of the 80 GB of a H100 SXM that is less "
        "than 141.1 GB of weights, 4 GB for activations and a KV block; "
        "allowed: more of it, a larger device, a smaller model or more "
        "tensor-parallel GPUs");
  engine.tensor_parallel_size = 4;
  CHECK(StepCostModel::create(engine).ok());
}

}  // namespace
}  // namespace vllm_metrics::sim
