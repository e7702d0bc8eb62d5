#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace vllm_metrics::inline v0 {

// The ranks and head sizes of multi-head latent attention (DeepSeek's MLA).
// The names are those of a Hugging Face config.json.
struct MlaShape {
  std::int64_t kv_lora_rank = 0;  // latent of keys and values
  std::int64_t qk_rope_head_dim = 0;
  std::int64_t qk_nope_head_dim = 0;
  std::int64_t v_head_dim = 0;
  // Latent of the queries; unset when they are projected directly.
  std::optional<std::int64_t> q_lora_rank = {};

  bool operator==(const MlaShape&) const = default;
};

// What PerfModel must know of a model and of how it is spread over GPUs. All
// sizes are of the whole model, not of one GPU's share. hf_config.h reads the
// first three sections from a config.json.
struct ModelShape {
  // --- Every transformer --------------------------------------------------

  std::int64_t num_hidden_layers = 0;
  std::int64_t hidden_size = 0;
  std::int64_t num_attention_heads = 0;
  std::int64_t num_kv_heads = 0;  // not looked at with MLA
  std::int64_t head_dim = 0;      // likewise
  std::int64_t vocab_size = 0;
  std::int64_t intermediate_size = 0;  // width of a dense feed-forward layer
  std::optional<MlaShape> mla = {};

  // --- Mixture of experts; 0 where there are none -------------------------

  std::int64_t num_moe_layers = 0;  // of the layers; see count_moe_layers()
  std::int64_t num_experts = 0;     // routed, in one layer
  std::int64_t num_experts_per_tok = 0;
  std::int64_t moe_intermediate_size = 0;  // width of one expert
  std::int64_t num_shared_experts = 0;

  // --- Numbers ------------------------------------------------------------

  // As vLLM spells it: "bfloat16", "float16", "half", "float32", "float".
  // Another name counts 2 bytes, and PerfModel::warning() says so.
  std::string dtype = "bfloat16";
  // How the weights of attention and feed-forward are quantised, as vLLM
  // names the method, e.g. "fp8" or "awq"; empty: not at all. With a method
  // that is not known these two parts are left out of the estimate.
  std::string quantization = {};
  // "auto" is `dtype`; one of its names; or a packed kind, e.g. "fp8".
  std::string cache_dtype = "auto";

  // --- Parallelism --------------------------------------------------------

  std::int64_t tensor_parallel_size = 1;
  std::int64_t pipeline_parallel_size = 1;
  std::int64_t data_parallel_size = 1;
  bool enable_expert_parallel = false;

  bool operator==(const ModelShape&) const = default;
};

// Which layers are mixtures of experts, told in the terms of a config.json.
struct MoeLayerPattern {
  std::int64_t num_hidden_layers = 0;
  std::int64_t num_experts = 0;
  // Every n-th layer. Below 1: not said.
  std::optional<std::int64_t> interleave_moe_layer_step = {};
  // Both together: every n-th layer, but not the first k. n below 1: not said.
  std::optional<std::int64_t> moe_layer_freq = {};
  std::optional<std::int64_t> first_k_dense_replace = {};
};

// How many layers a pattern makes mixtures of experts; the last rule that
// applies decides, and without one it is all layers or, without experts, none.
// Definition: vLLM FfnMetrics and its parsers. vLLM v1/metrics/perf.py.
constexpr std::int64_t count_moe_layers(
    const MoeLayerPattern& pattern) noexcept {
  const std::int64_t layers =
      pattern.num_hidden_layers > 0 ? pattern.num_hidden_layers : 0;
  std::int64_t count = pattern.num_experts != 0 ? layers : 0;
  const std::int64_t step = pattern.interleave_moe_layer_step.value_or(0);
  if (step > 0) count = layers / step;
  const std::int64_t freq = pattern.moe_layer_freq.value_or(0);
  if (freq > 0 && pattern.first_k_dense_replace.has_value()) {
    // Multiples of freq below n: the quotient, rounded up.
    const auto multiples_below = [freq](std::int64_t n) {
      return n / freq + (n % freq != 0 ? 1 : 0);
    };
    const std::int64_t first = *pattern.first_k_dense_replace;
    count = multiples_below(layers);
    if (first > 0) count -= multiples_below(first < layers ? first : layers);
  }
  return count;
}

}  // namespace vllm_metrics::inline v0
