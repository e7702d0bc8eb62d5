#include "vllm_metrics/model_config/hf_config.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "src/model_config/config_fields.h"

namespace vllm_metrics::inline v0 {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxFileBytes = std::size_t{16} << 20;

// Python writes these numbers, which JSON has not. As long as before, so that
// positions in messages stay right; none of them is a size.
std::string without_python_constants(std::string_view text) {
  std::string json(text);
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (in_string && json[i] == '\\') {
      ++i;
    } else if (json[i] == '"') {
      in_string = !in_string;
    } else if (!in_string) {
      for (const std::string_view name : {"NaN", "Infinity", "-Infinity"}) {
        if (std::string_view(json).substr(i, name.size()) != name) continue;
        json.replace(i, name.size(), name.size(), ' ');
        json[i] = '0';
      }
    }
  }
  return json;
}

// The reason from nlohmann's "[json.exception...] parse error at line 1, ...".
std::string reason_of(const Json::exception& error) {
  const std::string_view what = error.what();
  const std::size_t end = what.find("] ");
  return std::string(end == std::string_view::npos ? what
                                                   : what.substr(end + 2));
}

absl::StatusOr<Json> parse(std::string_view text, std::string_view file) {
  try {
    Json json = Json::parse(without_python_constants(text));
    if (json.is_object()) return json;
    return absl::InvalidArgumentError(std::string(file) +
                                      ": is not a JSON object");
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(std::string(file) +
                                      ": is not JSON: " + reason_of(error));
  }
}

// The object that describes the language model.
ConfigFields text_config_of(ConfigFields config) {
  constexpr std::string_view kNested[] = {"thinker_config", "text_config",
                                          "llm_config", "language_config"};
  for (const std::string_view name : kNested) {
    if (auto nested = config.object(name)) config = *std::move(nested);
  }
  return config;
}

std::int64_t kv_heads_of(const ConfigFields& config, std::int64_t heads) {
  if (config.is_true("multi_query") &&
      !config.is_true("new_decoder_architecture")) {
    return 1;
  }
  return config
      .integer({"n_head_kv", "num_kv_heads", "num_key_value_heads",
                "multi_query_group_num"},
               1)
      .value_or(heads);
}

void read_attention(const ConfigFields& config, ModelShape& shape) {
  shape.num_attention_heads =
      config.needed_integer({"num_attention_heads", "n_head", "n_heads"});
  shape.num_kv_heads = kv_heads_of(config, shape.num_attention_heads);
  shape.head_dim = config.integer({"head_dim"}, 1)
                       .value_or(shape.hidden_size / shape.num_attention_heads);
  // 0 is how some configs say that there is none.
  const auto rank = config.integer({"kv_lora_rank"}, 0);
  if (rank.value_or(0) == 0) return;
  shape.mla = {.kv_lora_rank = *rank,
               .qk_rope_head_dim = config.needed_integer({"qk_rope_head_dim"}),
               .qk_nope_head_dim = config.needed_integer({"qk_nope_head_dim"}),
               .v_head_dim = config.needed_integer({"v_head_dim"}),
               .q_lora_rank = config.integer({"q_lora_rank"}, 0)};
  if (shape.mla->q_lora_rank == 0) shape.mla->q_lora_rank.reset();
}

// A list has 1 for each layer of experts, 0 for each dense one.
std::int64_t listed_moe_layers(const Json& layers, std::int64_t num_layers) {
  std::int64_t count = 0;
  for (const Json& layer : layers) {
    if (layer.is_number() && layer.get<double>() != 0.0) ++count;
  }
  return std::min(count, num_layers);
}

void read_experts(const ConfigFields& config, ModelShape& shape) {
  shape.num_experts = config
                          .integer({"num_experts", "moe_num_experts",
                                    "n_routed_experts", "num_local_experts"},
                                   0)
                          .value_or(0);
  shape.num_experts_per_tok = config
                                  .integer({"num_experts_per_tok", "moe_topk",
                                            "experts_per_token", "moe_k"},
                                           0)
                                  .value_or(0);
  shape.moe_intermediate_size =
      config.integer({"moe_intermediate_size", "intermediate_size"}, 0)
          .value_or(0);
  shape.num_shared_experts =
      config.integer({"n_shared_experts", "num_shared_experts"}, 0).value_or(0);

  const Json* freq = config.find("moe_layer_freq");
  if (freq != nullptr && freq->is_array()) {
    shape.num_moe_layers = listed_moe_layers(*freq, shape.num_hidden_layers);
    return;
  }
  shape.num_moe_layers = count_moe_layers(
      {.num_hidden_layers = shape.num_hidden_layers,
       .num_experts = shape.num_experts,
       .interleave_moe_layer_step =
           config.integer({"interleave_moe_layer_step"}, 0),
       .moe_layer_freq = config.integer({"moe_layer_freq"}, 1),
       .first_k_dense_replace = config.integer({"first_k_dense_replace"}, 0)});
}

// The kinds of modelopt have one method name in the file.
std::string modelopt_kind(const ConfigFields& quantization) {
  std::string algorithm = quantization.text({"quant_algo"}).value_or("");
  if (const auto nested = quantization.object("quantization")) {
    if (algorithm.empty()) {
      algorithm = nested->text({"quant_algo"}).value_or("");
    }
  }
  if (algorithm.find("MXFP8") != std::string::npos) return "modelopt_mxfp8";
  if (algorithm.find("FP4") != std::string::npos) return "modelopt_fp4";
  return algorithm.empty() ? "" : "modelopt";
}

// The method as vLLM names it.
std::string quantization_of(const ConfigFields& quantization) {
  std::string method =
      absl::AsciiStrToLower(quantization.text({"quant_method"}).value_or(""));
  if (method.empty() || method == "modelopt") {
    std::string kind = modelopt_kind(quantization);
    if (!kind.empty()) return kind;
  }
  if (method.empty()) return "unnamed";
  if (method == "compressed_tensors") return "compressed-tensors";
  if (method == "auto-round" || method == "auto_round") return "inc";
  return method;
}

// They stand beside the language model or in it.
void read_numbers(const ConfigFields& config, ModelShape& shape) {
  constexpr std::string_view kPrefix = "torch.";
  if (auto dtype = config.text({"torch_dtype", "dtype"})) {
    if (dtype->starts_with(kPrefix)) dtype->erase(0, kPrefix.size());
    shape.dtype = *std::move(dtype);
  }
  for (const std::string_view name :
       {"quantization_config", "compression_config"}) {
    if (const auto quantization = config.object(name)) {
      shape.quantization = quantization_of(*quantization);
      return;
    }
  }
}

absl::StatusOr<std::string> content_of(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    const int reason = errno;
    const std::string message =
        file + ": " + std::generic_category().message(reason);
    return reason == ENOENT ? absl::NotFoundError(message)
                            : absl::UnavailableError(message);
  }
  std::string text;
  char chunk[8192];
  while (text.size() <= kMaxFileBytes) {
    stream.read(chunk, sizeof(chunk));
    if (stream.gcount() == 0) break;
    text.append(chunk, static_cast<std::size_t>(stream.gcount()));
  }
  if (stream.bad()) return absl::UnavailableError(file + ": cannot be read");
  if (text.size() > kMaxFileBytes) {
    return absl::InvalidArgumentError(file + ": is larger than 16 MiB");
  }
  return text;
}

}  // namespace

absl::StatusOr<ModelShape> parse_hf_config(std::string_view text,
                                           std::string_view file) {
  const absl::StatusOr<Json> json = parse(text, file);
  if (!json.ok()) return json.status();
  absl::Status status;
  const ConfigFields whole(*json, file, "", status);
  const ConfigFields config = text_config_of(whole);
  ModelShape shape;
  shape.num_hidden_layers = config.needed_integer(
      {"num_hidden_layers", "n_layer", "n_layers", "num_layers"});
  shape.hidden_size =
      config.needed_integer({"hidden_size", "n_embd", "d_model"});
  shape.vocab_size = config.needed_integer({"vocab_size", "padded_vocab_size"});
  shape.intermediate_size =
      config.integer({"intermediate_size"}, 1).value_or(4 * shape.hidden_size);
  read_attention(config, shape);
  read_experts(config, shape);
  read_numbers(config, shape);
  read_numbers(whole, shape);
  if (!status.ok()) return status;
  return shape;
}

absl::StatusOr<ModelShape> read_hf_config(const std::string& path) {
  std::string file = path;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    file = (std::filesystem::path(path) / "config.json").string();
  }
  const absl::StatusOr<std::string> text = content_of(file);
  if (!text.ok()) return text.status();
  return parse_hf_config(*text, file);
}

}  // namespace vllm_metrics::inline v0
