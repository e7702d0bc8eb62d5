#include "src/stats/perf_model_builder.h"

#include <algorithm>
#include <utility>

#include "src/stats/dtype_size.h"

namespace vllm_metrics::inline v0 {
namespace {

constexpr std::uint64_t kActivationBytes = 2;

constexpr std::int64_t kMaxSize = 2147483647;  // 2^31 - 1

// Ten factors below this times quantities below 2^63 add up in 128 bits.
constexpr std::uint64_t kFactorLimit = std::uint64_t{1} << 59;

// The product, or kFactorLimit if it is as large or larger.
std::uint64_t product_of(std::initializer_list<std::uint64_t> factors) {
  std::uint64_t product = 1;
  for (const std::uint64_t factor : factors) {
    if (factor == 0) return 0;
    product = product < kFactorLimit / factor ? product * factor : kFactorLimit;
  }
  return product;
}

std::uint64_t size_of(std::int64_t value) {
  return static_cast<std::uint64_t>(value);
}

// One GPU's share of heads: never none, they are replicated then.
std::uint64_t share_of_heads(std::int64_t heads, std::int64_t gpus) {
  return std::max<std::uint64_t>(1, size_of(heads) / size_of(gpus));
}

struct Size {
  std::string_view field;
  std::int64_t value;
  std::int64_t least;
  std::int64_t most = kMaxSize;
};

std::string refusal_of_sizes(std::initializer_list<Size> sizes) {
  for (const Size& size : sizes) {
    if (size.value >= size.least && size.value <= size.most) continue;
    return std::string(size.field) + " = " + std::to_string(size.value) +
           " is not in " + std::to_string(size.least) + " to " +
           std::to_string(size.most);
  }
  return {};
}

std::string refusal_of_attention(const ModelShape& shape) {
  if (!shape.mla.has_value()) {
    return refusal_of_sizes({
        {"num_kv_heads", shape.num_kv_heads, 1},
        {"head_dim", shape.head_dim, 1},
    });
  }
  return refusal_of_sizes({
      {"mla.kv_lora_rank", shape.mla->kv_lora_rank, 1},
      {"mla.qk_rope_head_dim", shape.mla->qk_rope_head_dim, 1},
      {"mla.qk_nope_head_dim", shape.mla->qk_nope_head_dim, 1},
      {"mla.v_head_dim", shape.mla->v_head_dim, 1},
      {"mla.q_lora_rank", shape.mla->q_lora_rank.value_or(1), 1},
  });
}

}  // namespace

std::string PerfModel::Builder::refusal_of(const ModelShape& shape) {
  const bool has_dense_layers = shape.num_moe_layers < shape.num_hidden_layers;
  std::string refusal = refusal_of_sizes({
      {"num_hidden_layers", shape.num_hidden_layers, 1},
      {"hidden_size", shape.hidden_size, 1},
      {"num_attention_heads", shape.num_attention_heads, 1},
      {"vocab_size", shape.vocab_size, 1},
      {"intermediate_size", shape.intermediate_size, has_dense_layers ? 1 : 0},
      {"num_moe_layers", shape.num_moe_layers, 0, shape.num_hidden_layers},
      {"num_experts", shape.num_experts, 0},
      {"num_experts_per_tok", shape.num_experts_per_tok, 0},
      {"moe_intermediate_size", shape.moe_intermediate_size, 0},
      {"num_shared_experts", shape.num_shared_experts, 0},
      {"tensor_parallel_size", shape.tensor_parallel_size, 1},
      {"pipeline_parallel_size", shape.pipeline_parallel_size, 1},
      {"data_parallel_size", shape.data_parallel_size, 1},
  });
  if (refusal.empty()) refusal = refusal_of_attention(shape);
  if (refusal.empty() && !cache_dtype_bytes(shape.cache_dtype, 2)) {
    refusal = "cache_dtype = \"" + shape.cache_dtype +
              "\" is not \"auto\", a model dtype (bfloat16, float16, half, "
              "float32, float) or a packed kind (fp8, fp8_e4m3, fp8_e5m2, "
              "fp8_ds_mla, fp8_inc, int8, nvfp4, ...)";
  }
  return refusal;
}

PerfModel::Builder::Builder(const ModelShape& shape, PerfModel& model)
    : shape_(shape), model_(model) {
  const auto dtype_bytes = model_dtype_bytes(shape.dtype);
  if (!dtype_bytes) {
    model.warning_ =
        "Unknown model_dtype " + shape.dtype + ", defaulting to bfloat16";
  }
  model_half_bytes_ = 2 * dtype_bytes.value_or(2);
  b_ = cache_dtype_bytes(shape.cache_dtype, model_half_bytes_ / 2).value_or(2);
  H_ = size_of(shape.hidden_size);
  const std::uint64_t stages = size_of(shape.pipeline_parallel_size);
  L_ = size_of(shape.num_hidden_layers) / stages;
  q_ = share_of_heads(shape.num_attention_heads, shape.tensor_parallel_size);
  k_ = share_of_heads(shape.num_kv_heads, shape.tensor_parallel_size);

  // Feed-forward layers are spread over data-parallel ranks too.
  const std::uint64_t ranks =
      size_of(shape.data_parallel_size) * size_of(shape.tensor_parallel_size);
  const std::uint64_t width_ranks = shape.enable_expert_parallel ? 1 : ranks;
  const std::uint64_t expert_ranks = shape.enable_expert_parallel ? ranks : 1;
  dense_layers_ =
      size_of(shape.num_hidden_layers - shape.num_moe_layers) / stages;
  moe_layers_ = size_of(shape.num_moe_layers) / stages;
  dense_width_ = size_of(shape.intermediate_size) / width_ranks;
  expert_width_ = size_of(shape.moe_intermediate_size) / width_ranks;
  model.experts_per_token_ = size_of(shape.num_experts_per_tok);
  model.expert_parallel_size_ = expert_ranks;
  model.experts_per_gpu_ = size_of(shape.num_experts) / expert_ranks;
}

void PerfModel::Builder::build() {
  const std::optional<std::uint64_t> quantized =
      shape_.quantization.empty() ? model_half_bytes_
                                  : quantized_half_bytes(shape_.quantization);
  const bool complete_experts =
      shape_.num_moe_layers == 0 ||
      (shape_.num_experts > 0 && shape_.num_experts_per_tok > 0 &&
       shape_.moe_intermediate_size > 0);
  half_bytes_ = quantized.value_or(0);
  model_.has_attention_ = quantized.has_value();
  model_.has_feed_forward_ = quantized.has_value() && complete_experts;
  if (model_.has_attention_) {
    if (shape_.mla.has_value()) {
      add_mla();
    } else {
      add_attention();
    }
  }
  if (model_.has_feed_forward_) {
    if (dense_layers_ > 0) add_dense();
    if (moe_layers_ > 0) add_routed();
    if (moe_layers_ > 0 && shape_.num_shared_experts > 0) add_shared();
  }
  add_unembedding();
}

bool PerfModel::Builder::fits(const PerfModel& model) noexcept {
  const auto fits = [](const Sum& sum) {
    return std::all_of(sum.factors.begin(), sum.factors.end(),
                       [](std::uint64_t f) { return f < kFactorLimit; });
  };
  return fits(model.flops_) && fits(model.read_bytes_) &&
         fits(model.write_bytes_);
}

void PerfModel::Builder::add_attention() {
  const std::uint64_t a = kActivationBytes;
  const std::uint64_t d = size_of(shape_.head_dim);
  const std::uint64_t qkv = q_ + 2 * k_;
  Sum& flops = model_.flops_;
  add(flops, "attn.qkv_proj", {{kTokens, {2, H_, qkv, d, L_}}});
  add(flops, "attn.attn_qk", {{kTokenContext, {2, q_, d, L_}}});
  add(flops, "attn.attn_av", {{kTokenContext, {2, q_, d, L_}}});
  add(flops, "attn.out_proj", {{kTokens, {2, H_, q_, d, L_}}});

  // Prefill reads keys and values as activations, decode from the cache.
  Sum& read = model_.read_bytes_;
  add(read, "attn.qkv_input", {{kTokens, {H_, a, L_}}});
  add_weights(read, "attn.qkv_weight", {H_, qkv, d, half_bytes_, L_});
  add(read, "attn.attn_input",
      {{kPrefillTokens, {q_, d, a, L_}},
       {kPrefillContext, {2, k_, d, a, L_}},
       {kDecodeTokens, {q_, d, a, L_}},
       {kDecodeContext, {2, k_, d, b_, L_}}});
  add(read, "attn.out_input", {{kTokens, {q_, d, a, L_}}});
  add_weights(read, "attn.out_weight", {q_, d, H_, half_bytes_, L_});

  Sum& write = model_.write_bytes_;
  add(write, "attn.qkv_output", {{kTokens, {qkv, d, a, L_}}});
  add(write, "attn.kv_cache", {{kTokens, {2, k_, d, b_, L_}}});
  add(write, "attn.out_output", {{kTokens, {H_, a, L_}}});
}

void PerfModel::Builder::add_mla() {
  const std::uint64_t a = kActivationBytes;
  const std::uint64_t c = size_of(shape_.mla->kv_lora_rank);
  const std::uint64_t v = size_of(shape_.mla->v_head_dim);
  const std::uint64_t pv = size_of(shape_.mla->qk_nope_head_dim) + v;
  const std::uint64_t cr = c + size_of(shape_.mla->qk_rope_head_dim);
  const std::uint64_t qk = size_of(shape_.mla->qk_nope_head_dim) +
                           size_of(shape_.mla->qk_rope_head_dim);
  add_mla_query();

  Sum& flops = model_.flops_;
  add(flops, "mla_attn.kv_a_proj", {{kTokens, {2, H_, cr, L_}}});
  add(flops, "mla_attn.kv_b_proj", {{kTokens, {2, c, q_, pv, L_}}});
  add(flops, "mla_attn.attn_qk", {{kTokenContext, {2, q_, qk, L_}}});
  add(flops, "mla_attn.attn_av", {{kTokenContext, {2, q_, v, L_}}});
  add(flops, "mla_attn.out_proj", {{kTokens, {2, q_, v, H_, L_}}});

  // Prefill reads keys and values unpacked, decode their latents.
  Sum& read = model_.read_bytes_;
  add(read, "mla_attn.kv_a_input", {{kTokens, {H_, a, L_}}});
  add_weights(read, "mla_attn.kv_a_weight", {H_, cr, half_bytes_, L_});
  add(read, "mla_attn.kv_b_input", {{kTokens, {c, a, L_}}});
  add_weights(read, "mla_attn.kv_b_weight", {c, q_, pv, half_bytes_, L_});
  add(read, "mla_attn.attn_input",
      {{kPrefillTokens, {q_, qk, a, L_}},
       {kPrefillContext, {q_, qk + v, a, L_}},
       {kDecodeTokens, {q_, qk, a, L_}},
       {kDecodeContext, {cr, b_, L_}}});
  add(read, "mla_attn.out_input", {{kTokens, {q_, v, a, L_}}});
  add_weights(read, "mla_attn.out_weight", {q_, v, H_, half_bytes_, L_});

  Sum& write = model_.write_bytes_;
  add(write, "mla_attn.kv_a_output", {{kTokens, {cr, a, L_}}});
  add(write, "mla_attn.kv_b_output", {{kTokens, {q_, pv, a, L_}}});
  add(write, "mla_attn.kv_cache", {{kTokens, {cr, b_, L_}}});
  add(write, "mla_attn.out_output", {{kTokens, {H_, a, L_}}});
}

void PerfModel::Builder::add_mla_query() {
  const std::uint64_t a = kActivationBytes;
  const std::uint64_t qk = size_of(shape_.mla->qk_nope_head_dim) +
                           size_of(shape_.mla->qk_rope_head_dim);
  Sum& flops = model_.flops_;
  Sum& read = model_.read_bytes_;
  Sum& write = model_.write_bytes_;
  if (!shape_.mla->q_lora_rank.has_value()) {
    add(flops, "mla_attn.q_proj", {{kTokens, {2, H_, q_, qk, L_}}});
    add(read, "mla_attn.q_input", {{kTokens, {H_, a, L_}}});
    add_weights(read, "mla_attn.q_weight", {H_, q_, qk, half_bytes_, L_});
    add(write, "mla_attn.q_output", {{kTokens, {q_, qk, a, L_}}});
    return;
  }
  const std::uint64_t u = size_of(*shape_.mla->q_lora_rank);
  add(flops, "mla_attn.q_a_proj", {{kTokens, {2, H_, u, L_}}});
  add(flops, "mla_attn.q_b_proj", {{kTokens, {2, u, q_, qk, L_}}});
  add(read, "mla_attn.q_a_input", {{kTokens, {H_, a, L_}}});
  add_weights(read, "mla_attn.q_a_weight", {H_, u, half_bytes_, L_});
  add(read, "mla_attn.q_b_input", {{kTokens, {u, a, L_}}});
  add_weights(read, "mla_attn.q_b_weight", {u, q_, qk, half_bytes_, L_});
  add(write, "mla_attn.q_a_output", {{kTokens, {u, a, L_}}});
  add(write, "mla_attn.q_b_output", {{kTokens, {q_, qk, a, L_}}});
}

void PerfModel::Builder::add_dense() {
  const std::uint64_t a = kActivationBytes;
  const std::uint64_t width = dense_width_;
  const std::uint64_t layers = dense_layers_;
  add(model_.flops_, "ffn.dense_ffn", {{kTokens, {6, H_, width, layers}}});

  Sum& read = model_.read_bytes_;
  add(read, "ffn.dense_up_gate_input", {{kTokens, {H_, a, layers}}});
  add_weights(read, "ffn.dense_up_gate_weights",
              {2, H_, width, half_bytes_, layers});
  add(read, "ffn.dense_silu_input", {{kTokens, {2, width, a, layers}}});
  add(read, "ffn.dense_down_input", {{kTokens, {width, a, layers}}});
  add_weights(read, "ffn.dense_down_weights", {H_, width, half_bytes_, layers});

  Sum& write = model_.write_bytes_;
  add(write, "ffn.dense_up_gate_output", {{kTokens, {2, width, a, layers}}});
  add(write, "ffn.dense_silu_output", {{kTokens, {width, a, layers}}});
  add(write, "ffn.dense_down_output", {{kTokens, {H_, a, layers}}});
}

void PerfModel::Builder::add_routed() {
  const std::uint64_t a = kActivationBytes;
  const std::uint64_t width = expert_width_;
  const std::uint64_t layers = moe_layers_;
  add(model_.flops_, "ffn.routed_ffn",
      {{kRoutedTokens, {6, H_, width, layers}}});

  // Weights only of experts that are active: not a constant, so that the half
  // bytes are not cut here but by PerfModel::value_of().
  const auto add_expert_weights = [&](std::string_view name, Product weights) {
    Part part = {.name = name};
    part.factors[kActiveExperts] = product_of(weights);
    add_part(model_.read_bytes_, part);
  };
  Sum& read = model_.read_bytes_;
  add(read, "ffn.routed_up_gate_input", {{kRoutedTokens, {H_, a, layers}}});
  add_expert_weights("ffn.routed_up_gate_weights",
                     {2, H_, width, half_bytes_, layers});
  add(read, "ffn.routed_silu_input", {{kRoutedTokens, {2, width, a, layers}}});
  add(read, "ffn.routed_down_input", {{kRoutedTokens, {width, a, layers}}});
  add_expert_weights("ffn.routed_down_weights",
                     {H_, width, half_bytes_, layers});

  Sum& write = model_.write_bytes_;
  add(write, "ffn.routed_up_gate_output",
      {{kRoutedTokens, {2, width, a, layers}}});
  add(write, "ffn.routed_silu_output", {{kRoutedTokens, {width, a, layers}}});
  add(write, "ffn.routed_down_output", {{kRoutedTokens, {H_, a, layers}}});
}

void PerfModel::Builder::add_shared() {
  const std::uint64_t a = kActivationBytes;
  const std::uint64_t width = expert_width_;
  const std::uint64_t layers = moe_layers_;
  const std::uint64_t shared = size_of(shape_.num_shared_experts);
  add(model_.flops_, "ffn.shared_ffn",
      {{kTokens, {6, H_, width, shared, layers}}});

  // vLLM reads the input of the down projection once, not once an expert.
  Sum& read = model_.read_bytes_;
  add(read, "ffn.shared_up_gate_input", {{kTokens, {H_, a, layers}}});
  add_weights(read, "ffn.shared_up_gate_weights",
              {2, H_, width, shared, half_bytes_, layers});
  add(read, "ffn.shared_silu_input",
      {{kTokens, {2, width, shared, a, layers}}});
  add(read, "ffn.shared_down_input", {{kTokens, {width, a, layers}}});
  add_weights(read, "ffn.shared_down_weights",
              {H_, width, shared, half_bytes_, layers});

  Sum& write = model_.write_bytes_;
  add(write, "ffn.shared_up_gate_output",
      {{kTokens, {2, shared, width, a, layers}}});
  add(write, "ffn.shared_silu_output", {{kTokens, {shared, width, a, layers}}});
  add(write, "ffn.shared_down_output", {{kTokens, {shared, H_, a, layers}}});
}

// Never quantised, and whole whatever the pipeline: some stage has all of it.
void PerfModel::Builder::add_unembedding() {
  const std::uint64_t a = kActivationBytes;
  const std::uint64_t vocab =
      size_of(shape_.vocab_size) / size_of(shape_.tensor_parallel_size);
  add(model_.flops_, "unembed.unembed", {{kLogitsTokens, {2, H_, vocab}}});
  add(model_.read_bytes_, "unembed.input", {{kLogitsTokens, {H_, a}}});
  add_weights(model_.read_bytes_, "unembed.weight",
              {H_, vocab, model_half_bytes_});
  add(model_.write_bytes_, "unembed.output", {{kLogitsTokens, {vocab, a}}});
}

void PerfModel::Builder::add(Sum& sum, std::string_view name,
                             std::initializer_list<Term> terms) {
  // Of several terms are the inputs of the attention itself, which vLLM does
  // not list for a step without tokens.
  Part part = {.name = name, .only_with_tokens = terms.size() > 1};
  for (const Term& term : terms) {
    part.factors[term.quantity] = product_of({2, product_of(term.factors)});
  }
  add_part(sum, part);
}

void PerfModel::Builder::add_weights(Sum& sum, std::string_view name,
                                     Product weights) {
  Part part = {.name = name};
  part.factors[kOne] = product_of(weights) / 2 * 2;
  add_part(sum, part);
}

void PerfModel::Builder::add_part(Sum& sum, const Part& part) {
  for (std::size_t i = 0; i < part.factors.size(); ++i) {
    sum.factors[i] = std::min(kFactorLimit, sum.factors[i] + part.factors[i]);
  }
  sum.parts.push_back(part);
}

}  // namespace vllm_metrics::inline v0
