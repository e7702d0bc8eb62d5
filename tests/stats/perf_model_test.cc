#include "vllm_metrics/stats/perf_model.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "vllm_metrics/stats/perf_breakdown.h"

namespace vllm_metrics {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

// A Llama of 8 billion weights on two GPUs.
ModelShape dense_shape() {
  ModelShape shape;
  shape.num_hidden_layers = 32;
  shape.hidden_size = 4096;
  shape.num_attention_heads = 32;
  shape.num_kv_heads = 8;
  shape.head_dim = 128;
  shape.vocab_size = 32000;
  shape.intermediate_size = 14336;
  shape.tensor_parallel_size = 2;
  return shape;
}

ModelShape moe_shape() {
  ModelShape shape;
  shape.num_hidden_layers = 48;
  shape.hidden_size = 2048;
  shape.num_attention_heads = 32;
  shape.num_kv_heads = 4;
  shape.head_dim = 128;
  shape.vocab_size = 151936;
  shape.intermediate_size = 6144;
  shape.num_moe_layers = 48;
  shape.num_experts = 128;
  shape.num_experts_per_tok = 8;
  shape.moe_intermediate_size = 768;
  shape.num_shared_experts = 1;
  shape.quantization = "fp8";
  shape.cache_dtype = "fp8";
  shape.data_parallel_size = 2;
  shape.tensor_parallel_size = 4;
  shape.pipeline_parallel_size = 2;
  shape.enable_expert_parallel = true;
  return shape;
}

ModelShape mla_shape() {
  ModelShape shape;
  shape.num_hidden_layers = 61;
  shape.hidden_size = 7168;
  shape.num_attention_heads = 128;
  shape.vocab_size = 129280;
  shape.intermediate_size = 18432;
  shape.mla = {.kv_lora_rank = 512,
               .qk_rope_head_dim = 64,
               .qk_nope_head_dim = 128,
               .v_head_dim = 128,
               .q_lora_rank = 1536};
  shape.num_moe_layers = 58;
  shape.num_experts = 256;
  shape.num_experts_per_tok = 8;
  shape.moe_intermediate_size = 2048;
  shape.num_shared_experts = 1;
  shape.quantization = "awq";
  shape.tensor_parallel_size = 8;
  return shape;
}

PerfModel made(const ModelShape& shape) {
  std::string error;
  auto model = PerfModel::create(shape, &error);
  INFO(error);
  REQUIRE(model.has_value());
  return *std::move(model);
}

std::string refusal(const ModelShape& shape) {
  std::string error = "none";
  REQUIRE_FALSE(PerfModel::create(shape, &error).has_value());
  return error;
}

ScheduledRequest new_request(std::int64_t tokens, std::int64_t computed = 0) {
  return {tokens, computed, true};
}

// A request that goes on, one token a step unless told otherwise.
ScheduledRequest continued(std::int64_t computed, std::int64_t tokens = 1) {
  return {tokens, computed, false};
}

void check(const PerfStats& stats, double flops, double read, double write) {
  CHECK(stats.num_flops_per_gpu == flops);
  CHECK(stats.num_read_bytes_per_gpu == read);
  CHECK(stats.num_write_bytes_per_gpu == write);
}

PerfStats estimate(const ModelShape& shape,
                   const std::vector<ScheduledRequest>& requests) {
  return made(shape).estimate(requests);
}

double value_of(const std::vector<PerfBreakdown::Part>& parts,
                std::string_view name) {
  for (const auto& part : parts) {
    if (part.name == name) return part.value;
  }
  FAIL("no part " << name);
  return 0.0;
}

double sum_of(const std::vector<PerfBreakdown::Part>& parts) {
  double sum = 0.0;
  for (const auto& part : parts) sum += part.value;
  return sum;
}

TEST_CASE("PerfModel: a dense model costs what vLLM says", "[stats]") {
  ModelShape shape = dense_shape();
  SECTION("one new request") {
    check(estimate(shape, {new_request(512)}), 3642263339008, 8251252736,
          1107328256);
  }
  SECTION("one decode") {
    check(estimate(shape, {continued(1023)}), 7378829312, 7179673600, 2194688);
  }
  SECTION("both together") {
    check(estimate(shape, {new_request(512), continued(1023)}), 3649642168320,
          8320532480, 1109522944);
  }
  SECTION("nothing scheduled reads the weights") {
    check(estimate(shape, {}), 0, 7110393856, 0);
    check(estimate(shape, {new_request(0, 100), continued(100, -5)}), 0,
          7110393856, 0);
  }
  SECTION("one GPU, weights and cache in 8 bits") {
    shape.tensor_parallel_size = 1;
    shape.quantization = "fp8";
    shape.cache_dtype = "fp8";
    check(estimate(shape, {continued(1023)}), 14757658624, 7312384000, 3799552);
  }
  SECTION("more GPUs than heads") {
    shape.tensor_parallel_size = 64;
    check(estimate(shape, {new_request(4)}), 1245872128, 316882944, 2434024);
  }
}

TEST_CASE("PerfModel: an unknown quantisation leaves the unembedding",
          "[stats]") {
  ModelShape shape = dense_shape();
  shape.quantization = "int3_of_tomorrow";
  const PerfModel model = made(shape);
  CHECK_FALSE(model.has_attention());
  CHECK_FALSE(model.has_feed_forward());
  CHECK(model.warning().empty());
  const std::vector<ScheduledRequest> requests = {new_request(4)};
  check(model.estimate(requests), 131072000, 131080192, 32000);
}

TEST_CASE("PerfModel: mixtures of experts cost what vLLM says", "[stats]") {
  check(
      estimate(moe_shape(), {new_request(100), continued(500), continued(700)}),
      70874628096, 2265309184, 59763264);
}

TEST_CASE("PerfModel: latent attention costs what vLLM says", "[stats]") {
  check(estimate(mla_shape(), {new_request(64), continued(4095)}), 688986521600,
        43494682112, 679093120);
}

TEST_CASE("PerfModel: queries without a latent are projected directly",
          "[stats]") {
  ModelShape shape = mla_shape();
  shape.mla->q_lora_rank.reset();
  PerfContext context;
  context.add(new_request(64));
  context.add(continued(4095));
  PerfBreakdown breakdown;
  (void)made(shape).estimate(context, breakdown);
  // 65 tokens, 16 heads of 192, 61 layers; half a byte for each weight.
  CHECK(value_of(breakdown.flops, "mla_attn.q_proj") ==
        2.0 * 65 * 7168 * 16 * 192 * 61);
  CHECK(value_of(breakdown.read_bytes, "mla_attn.q_input") ==
        65.0 * 7168 * 2 * 61);
  CHECK(value_of(breakdown.read_bytes, "mla_attn.q_weight") ==
        7168.0 * 16 * 192 * 61 / 2);
  CHECK(value_of(breakdown.write_bytes, "mla_attn.q_output") ==
        65.0 * 16 * 192 * 2 * 61);
}

TEST_CASE("PerfModel: the parts of a new request add up to the whole",
          "[stats]") {
  PerfContext context;
  context.add(new_request(512));
  PerfBreakdown breakdown;
  const PerfStats stats = made(dense_shape()).estimate(context, breakdown);
  CHECK(stats.breakdown == &breakdown);
  CHECK(breakdown.num_batches == 1);
  CHECK(breakdown.context.prefill_num_tokens == 512);
  CHECK(breakdown.calculation_seconds == 0.0);

  CHECK(value_of(breakdown.flops, "attn.qkv_proj") == 412316860416);
  CHECK(value_of(breakdown.flops, "attn.attn_qk") == 34359738368);
  CHECK(value_of(breakdown.flops, "attn.attn_av") == 34359738368);
  CHECK(value_of(breakdown.flops, "attn.out_proj") == 274877906944);
  CHECK(value_of(breakdown.flops, "ffn.dense_ffn") == 2886218022912);
  CHECK(value_of(breakdown.flops, "unembed.unembed") == 131072000);
  CHECK(breakdown.flops.size() == 6);

  CHECK(sum_of(breakdown.flops) == stats.num_flops_per_gpu);
  CHECK(sum_of(breakdown.read_bytes) == stats.num_read_bytes_per_gpu);
  CHECK(sum_of(breakdown.write_bytes) == stats.num_write_bytes_per_gpu);
}

TEST_CASE("PerfModel: parts of experts and of latents add up to the whole",
          "[stats]") {
  PerfContext context;
  context.add(new_request(3, 17));
  context.add(continued(40));
  PerfBreakdown breakdown;
  for (const ModelShape& shape : {moe_shape(), mla_shape()}) {
    const PerfStats stats = made(shape).estimate(context, breakdown);
    CHECK(sum_of(breakdown.flops) == stats.num_flops_per_gpu);
    CHECK(sum_of(breakdown.read_bytes) == stats.num_read_bytes_per_gpu);
    CHECK(sum_of(breakdown.write_bytes) == stats.num_write_bytes_per_gpu);
  }
}

TEST_CASE("PerfModel: half bytes of weights are cut part by part", "[stats]") {
  ModelShape shape;
  shape.num_hidden_layers = 1;
  shape.hidden_size = 3;
  shape.num_attention_heads = 1;
  shape.num_kv_heads = 1;
  shape.head_dim = 1;
  shape.vocab_size = 1;
  shape.intermediate_size = 5;
  shape.quantization = "gptq";
  SECTION("dense: 9 / 2, 3 / 2, 30 / 2, 15 / 2 and 6 bytes of unembedding") {
    check(estimate(shape, {}), 0, 4 + 1 + 15 + 7 + 6, 0);
  }
  SECTION("experts: 30 / 2 and 15 / 2 of the one that is active") {
    shape.num_moe_layers = 1;
    shape.num_experts = 4;
    shape.num_experts_per_tok = 1;
    shape.moe_intermediate_size = 5;
    PerfContext context;
    context.add(continued(0));
    PerfBreakdown breakdown;
    const PerfStats stats = made(shape).estimate(context, breakdown);
    CHECK(value_of(breakdown.read_bytes, "ffn.routed_up_gate_weights") == 15);
    CHECK(value_of(breakdown.read_bytes, "ffn.routed_down_weights") == 7);
    CHECK(sum_of(breakdown.read_bytes) == stats.num_read_bytes_per_gpu);
  }
}

TEST_CASE("PerfModel: experts without all of their sizes are left out",
          "[stats]") {
  ModelShape shape = moe_shape();
  SECTION("no experts") { shape.num_experts = 0; }
  SECTION("none for a token") { shape.num_experts_per_tok = 0; }
  SECTION("no width") { shape.moe_intermediate_size = 0; }
  const PerfModel model = made(shape);
  CHECK(model.has_attention());
  CHECK_FALSE(model.has_feed_forward());
}

TEST_CASE("PerfModel: dtypes count their bytes, unknown ones two and a warning",
          "[stats]") {
  ModelShape shape = dense_shape();
  const PerfStats two_bytes = estimate(shape, {continued(1023)});
  SECTION("four bytes for each weight and cache entry, not each activation") {
    shape.dtype = "float32";
    // Twice the weights, and 8 KB (2 * 4 heads * 128 * 32 layers * 2 more
    // bytes) for each token of the context.
    const PerfStats stats = estimate(shape, {continued(1023)});
    CHECK(stats.num_read_bytes_per_gpu ==
          two_bytes.num_read_bytes_per_gpu + 7110393856 + 1024.0 * 65536);
  }
  SECTION("unknown") {
    shape.dtype = "float12";
    const PerfModel model = made(shape);
    CHECK(model.warning() ==
          "Unknown model_dtype float12, defaulting to bfloat16");
    const std::vector<ScheduledRequest> requests = {continued(1023)};
    CHECK(model.estimate(requests).num_read_bytes_per_gpu ==
          two_bytes.num_read_bytes_per_gpu);
  }
  SECTION("known") { CHECK(made(shape).warning().empty()); }
}

TEST_CASE("PerfModel: a packed cache counts one byte", "[stats]") {
  ModelShape shape = dense_shape();
  shape.cache_dtype = GENERATE("fp8", "fp8_e4m3", "fp8_e5m2", "fp8_ds_mla",
                               "fp8_inc", "int8", "nvfp4", "turboquant_k8v4");
  CAPTURE(shape.cache_dtype);
  // 2 * 4 heads * 128 * 32 layers: 32 KB less written for the one token.
  CHECK(estimate(shape, {continued(1023)}).num_write_bytes_per_gpu ==
        2194688 - 32768);
}

TEST_CASE("PerfModel: a shape that makes no sense is refused by name",
          "[stats]") {
  ModelShape shape = dense_shape();
  SECTION("nothing set") {
    CHECK(refusal({}) == "num_hidden_layers = 0 is not in 1 to 2147483647");
  }
  SECTION("negative") {
    shape.hidden_size = -4096;
    CHECK(refusal(shape) == "hidden_size = -4096 is not in 1 to 2147483647");
  }
  SECTION("too large") {
    shape.vocab_size = kMax;
    CHECK(refusal(shape) ==
          "vocab_size = 9223372036854775807 is not in 1 to 2147483647");
  }
  SECTION("no GPUs") {
    shape.tensor_parallel_size = 0;
    CHECK(refusal(shape) ==
          "tensor_parallel_size = 0 is not in 1 to 2147483647");
  }
  SECTION("more layers of experts than layers") {
    shape.num_moe_layers = 33;
    CHECK(refusal(shape) == "num_moe_layers = 33 is not in 0 to 32");
  }
  SECTION("no width for the layers that are dense") {
    shape.intermediate_size = 0;
    CHECK(refusal(shape) == "intermediate_size = 0 is not in 1 to 2147483647");
  }
  SECTION("latent attention without a rank") {
    shape.mla = {.kv_lora_rank = 0};
    CHECK(refusal(shape) == "mla.kv_lora_rank = 0 is not in 1 to 2147483647");
  }
  SECTION("cache dtype") {
    shape.cache_dtype = "fp3";
    CHECK(refusal(shape).find("cache_dtype = \"fp3\" is not \"auto\"") == 0);
  }
  SECTION("each in range, together absurd") {
    shape.hidden_size = shape.intermediate_size = 2147483647;
    CHECK(refusal(shape) == "the sizes of the model multiply to 2^58 or more");
  }
  SECTION("without a place for the error") {
    CHECK_FALSE(PerfModel::create({}).has_value());
  }
}

TEST_CASE("PerfModel: a width is not needed where every layer has experts",
          "[stats]") {
  ModelShape shape = moe_shape();
  shape.intermediate_size = 0;
  check(estimate(shape, {new_request(100), continued(500), continued(700)}),
        70874628096, 2265309184, 59763264);
}

TEST_CASE("PerfModel: requests cost what their context costs", "[stats]") {
  const std::vector<ScheduledRequest> requests = {
      continued(0),
      continued(1023),
      continued((1 << 30) - 1),
      continued(1 << 30),  // from here on sums are checked
      continued(std::int64_t{1} << 40),
      continued(-3),
      continued(100, 8),
      new_request(1, 30),
      new_request(512),
      new_request(0),
  };
  PerfContext context;
  for (const ScheduledRequest& request : requests) context.add(request);
  const PerfModel model = made(moe_shape());
  const PerfStats expected = model.estimate(context);
  check(model.estimate(requests), expected.num_flops_per_gpu,
        expected.num_read_bytes_per_gpu, expected.num_write_bytes_per_gpu);
}

TEST_CASE("PerfModel: absurd steps give large finite numbers", "[stats]") {
  ModelShape shape = moe_shape();
  const PerfModel model = made(shape);
  const std::vector<ScheduledRequest> requests = {
      new_request(kMax, kMax), new_request(kMax, -1), continued(kMax)};
  const PerfStats stats = model.estimate(requests);
  CHECK(stats.num_flops_per_gpu > 1e24);
  CHECK(stats.num_flops_per_gpu < 1e30);
  CHECK(stats.num_read_bytes_per_gpu > 1e24);
  CHECK(stats.num_read_bytes_per_gpu < 1e30);
}

TEST_CASE("PerfModel: exact up to 2^53, then the nearest double", "[stats]") {
  ModelShape shape = dense_shape();
  shape.quantization = "unknown";
  shape.hidden_size = 1;
  shape.vocab_size = 1;
  shape.tensor_parallel_size = 1;
  PerfContext context;
  context.num_prefill_requests = (std::int64_t{1} << 52) + 1;
  const PerfModel model = made(shape);
  CHECK(model.estimate(context).num_flops_per_gpu == 0x1p53 + 2);
  CHECK(model.estimate(context).num_read_bytes_per_gpu == 0x1p53 + 4);
}

}  // namespace
}  // namespace vllm_metrics
