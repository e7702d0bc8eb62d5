#include "src/tools/replay/config_fields.h"

#include <array>
#include <cstdint>
#include <optional>

namespace vllm_metrics::replay {
namespace {

// `lora` and `speculative` are objects with one number in them.
template <std::optional<std::int64_t> TraceConfig::*kMember>
void read_only_member(const JsonValue& value, TraceConfig& out,
                      std::string_view name) {
  if (value.json().is_null()) return;
  const Field<TraceConfig> fields[] = {
      required_field<TraceConfig, kMember>(name)};
  read_object(value, out, fields);
}

using Config = TraceConfig;
constexpr Field<Config> kConfigFields[] = {
    ignored_field<Config>("format"),  // was looked at first
    field<Config, &Config::profile>("profile"),
    nullable_field<Config, &Config::vllm_version>("vllm_version"),
    required_field<Config, &Config::model_name>("model_name"),
    required_field<Config, &Config::max_model_len>("max_model_len"),
    field<Config, &Config::engine_indexes>("engine_indexes"),
    field<Config, &Config::logger>("logger"),
    field<Config, &Config::client_count>("client_count"),
    {"lora",
     [](const JsonValue& value, Config& out) {
       read_only_member<&Config::max_loras>(value, out, "max_loras");
     }},
    {"speculative",
     [](const JsonValue& value, Config& out) {
       read_only_member<&Config::num_speculative_tokens>(
           value, out, "num_speculative_tokens");
     }},
    nullable_field<Config, &Config::is_diffusion>("is_diffusion"),
    nullable_field<Config, &Config::kv_cache_metrics>("kv_cache_metrics"),
    nullable_field<Config, &Config::enable_mfu_metrics>("enable_mfu_metrics"),
    nullable_field<Config, &Config::debug_mfu>("debug_mfu"),
    field<Config, &Config::model>("model"),
    nullable_field<Config, &Config::kv_connector>("kv_connector"),
    field<Config, &Config::show_hidden_metrics_for_version>(
        "show_hidden_metrics_for_version"),
    field<Config, &Config::compute_nans_in_logits>("compute_nans_in_logits"),
    field<Config, &Config::cudagraph>("cudagraph"),
    field<Config, &Config::num_gpu_blocks>("num_gpu_blocks"),
    field<Config, &Config::cache_config>("cache_config"),
};

constexpr Field<CudaGraphConfig> kCudaGraphFields[] = {
    required_field<CudaGraphConfig, &CudaGraphConfig::mode>("mode"),
    nullable_field<CudaGraphConfig, &CudaGraphConfig::capture_sizes>(
        "capture_sizes"),
};

// The attributes of the model's own config; unset where it has none.
struct HfFields {
  using Size = std::optional<std::int64_t>;
  Size num_attention_heads, num_hidden_layers, intermediate_size;
  Size num_experts_per_tok, moe_topk, moe_intermediate_size;
  Size n_shared_experts, num_shared_experts;
  Size interleave_moe_layer_step, moe_layer_freq, first_k_dense_replace;
  Size kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim;
  Size q_lora_rank;
};

using Hf = HfFields;
constexpr Field<Hf> kHfFields[] = {
    field<Hf, &Hf::num_attention_heads>("num_attention_heads"),
    field<Hf, &Hf::num_hidden_layers>("num_hidden_layers"),
    field<Hf, &Hf::intermediate_size>("intermediate_size"),
    field<Hf, &Hf::num_experts_per_tok>("num_experts_per_tok"),
    field<Hf, &Hf::moe_topk>("moe_topk"),
    field<Hf, &Hf::moe_intermediate_size>("moe_intermediate_size"),
    field<Hf, &Hf::n_shared_experts>("n_shared_experts"),
    field<Hf, &Hf::num_shared_experts>("num_shared_experts"),
    field<Hf, &Hf::interleave_moe_layer_step>("interleave_moe_layer_step"),
    field<Hf, &Hf::moe_layer_freq>("moe_layer_freq"),
    field<Hf, &Hf::first_k_dense_replace>("first_k_dense_replace"),
    field<Hf, &Hf::kv_lora_rank>("kv_lora_rank"),
    field<Hf, &Hf::qk_nope_head_dim>("qk_nope_head_dim"),
    field<Hf, &Hf::qk_rope_head_dim>("qk_rope_head_dim"),
    field<Hf, &Hf::v_head_dim>("v_head_dim"),
    field<Hf, &Hf::q_lora_rank>("q_lora_rank"),
};

void read_value(const JsonValue& value, HfFields& out) {
  read_object(value, out, kHfFields);
}

// `model`: what the engine knows, and the model's own config.
struct ModelFields {
  ModelShape shape;
  std::optional<std::string> quantization;
  bool is_mla = false;
  HfFields hf;
};

template <auto kMember>
void read_shape(const JsonValue& value, ModelFields& out) {
  read_value(value, out.shape.*kMember);
}

using Model = ModelFields;
constexpr Field<Model> kModelFields[] = {
    {"dtype", read_shape<&ModelShape::dtype>},
    {"cache_dtype", read_shape<&ModelShape::cache_dtype>},
    {"vocab_size", read_shape<&ModelShape::vocab_size>},
    {"hidden_size", read_shape<&ModelShape::hidden_size>},
    {"num_kv_heads", read_shape<&ModelShape::num_kv_heads>},
    {"head_dim", read_shape<&ModelShape::head_dim>},
    {"num_experts", read_shape<&ModelShape::num_experts>},
    {"dp", read_shape<&ModelShape::data_parallel_size>},
    {"tp", read_shape<&ModelShape::tensor_parallel_size>},
    {"pp", read_shape<&ModelShape::pipeline_parallel_size>},
    {"ep", read_shape<&ModelShape::enable_expert_parallel>},
    field<Model, &Model::is_mla>("is_mla"),
    field<Model, &Model::quantization>("quant"),
    required_field<Model, &Model::hf>("hf"),
};

// What vLLM makes of the attributes, and of those that are missing.
void add_hf(const HfFields& hf, ModelShape& shape) {
  shape.num_attention_heads = hf.num_attention_heads.value_or(0);
  shape.num_hidden_layers = hf.num_hidden_layers.value_or(0);
  shape.intermediate_size =
      hf.intermediate_size.value_or(4 * shape.hidden_size);
  shape.num_experts_per_tok =
      hf.num_experts_per_tok.value_or(hf.moe_topk.value_or(0));
  shape.moe_intermediate_size =
      hf.moe_intermediate_size.value_or(hf.intermediate_size.value_or(0));
  shape.num_shared_experts =
      hf.n_shared_experts.value_or(hf.num_shared_experts.value_or(0));
  shape.num_moe_layers = count_moe_layers(
      {.num_hidden_layers = shape.num_hidden_layers,
       .num_experts = shape.num_experts,
       .interleave_moe_layer_step = hf.interleave_moe_layer_step,
       .moe_layer_freq = hf.moe_layer_freq,
       .first_k_dense_replace = hf.first_k_dense_replace});
}

}  // namespace

void read_value(const JsonValue& value, TraceConfig& out) {
  if (!value.json().contains("format")) return value.fail_missing("format");
  if (value.json()["format"] != 1) {
    return value.member("format").refuse("1, the only format there is");
  }
  read_object(value, out, kConfigFields);
}

void read_value(const JsonValue& value, WireVersion& out) {
  constexpr std::array<std::pair<std::string_view, WireVersion>, 4> kProfiles =
      {{{"0.27", {0, 27}},
        {"0.28", {0, 28}},
        {"0.29", {0, 29}},
        {"0.30", {0, 30}}}};
  read_name(value, kProfiles, R"("0.27" to "0.30")", out);
}

void read_value(const JsonValue& value, TextLogger& out) {
  constexpr std::array<std::pair<std::string_view, TextLogger>, 3> kLoggers = {
      {{"none", TextLogger::kNone},
       {"per_engine", TextLogger::kPerEngine},
       {"aggregated", TextLogger::kAggregated}}};
  read_name(value, kLoggers, R"("per_engine", "aggregated" or "none")", out);
}

void read_value(const JsonValue& value, KvConnector& out) {
  constexpr std::array<std::pair<std::string_view, KvConnector>, 1>
      kConnectors = {{{"nixl", KvConnector::kNixl}}};
  read_name(value, kConnectors, R"(null or "nixl")", out);
}

void read_value(const JsonValue& value, CudaGraphConfig& out) {
  read_object(value, out, kCudaGraphFields);
}

void read_value(const JsonValue& value, ModelShape& out) {
  ModelFields fields;
  read_object(value, fields, kModelFields);
  out = std::move(fields.shape);
  out.quantization = fields.quantization.value_or("");
  add_hf(fields.hf, out);
  if (!fields.is_mla) return;
  const HfFields& hf = fields.hf;
  out.mla = {.kv_lora_rank = hf.kv_lora_rank.value_or(0),
             .qk_rope_head_dim = hf.qk_rope_head_dim.value_or(0),
             .qk_nope_head_dim = hf.qk_nope_head_dim.value_or(0),
             .v_head_dim = hf.v_head_dim.value_or(0),
             .q_lora_rank = hf.q_lora_rank};
}

void read_value(const JsonValue& value,
                std::pair<std::string, std::string>& out) {
  if (!value.is_array_of(2, "a pair [key, value] of texts")) return;
  read_value(value.element(0), out.first);
  read_value(value.element(1), out.second);
}

}  // namespace vllm_metrics::replay
