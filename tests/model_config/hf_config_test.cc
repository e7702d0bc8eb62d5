#include "vllm_metrics/model_config/hf_config.h"

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "vllm_metrics/stats/perf_model.h"

namespace vllm_metrics {
namespace {

constexpr std::string_view kLlama = R"({
  "architectures": ["LlamaForCausalLM"], "model_type": "llama",
  "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
  "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
  "rope_scaling": {"factor": 8.0, "rope_type": "llama3"},
  "tie_word_embeddings": false, "torch_dtype": "bfloat16"
})";

constexpr std::string_view kQwenMoe = R"({
  "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe",
  "decoder_sparse_step": 1, "head_dim": 128, "hidden_size": 2048,
  "intermediate_size": 6144, "mlp_only_layers": [],
  "moe_intermediate_size": 768, "num_attention_heads": 32,
  "num_experts": 128, "num_experts_per_tok": 8, "num_hidden_layers": 48,
  "num_key_value_heads": 4, "sliding_window": null, "torch_dtype": "bfloat16",
  "vocab_size": 151936,
  "quantization_config": {"activation_scheme": "dynamic", "fmt": "e4m3",
    "quant_method": "fp8", "weight_block_size": [128, 128]}
})";

constexpr std::string_view kDeepSeek = R"({
  "architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3",
  "first_k_dense_replace": 3, "hidden_size": 7168, "intermediate_size": 18432,
  "kv_lora_rank": 512, "moe_intermediate_size": 2048, "moe_layer_freq": 1,
  "n_group": 8, "n_routed_experts": 256, "n_shared_experts": 1,
  "num_attention_heads": 128, "num_experts_per_tok": 8,
  "num_hidden_layers": 61, "num_key_value_heads": 128,
  "num_nextn_predict_layers": 1, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
  "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 129280,
  "quantization_config": {"quant_method": "AWQ", "bits": 4},
  "torch_dtype": "bfloat16"
})";

// The least that is needed, with more fields from `rest`.
std::string small(std::string_view rest) {
  return R"({"hidden_size": 64, "num_hidden_layers": 6,
             "num_attention_heads": 4, "vocab_size": 100)" +
         std::string(rest) + "}";
}

ModelShape shape_of(std::string_view text) {
  const auto shape = parse_hf_config(text);
  INFO(shape.status().ToString());
  REQUIRE(shape.ok());
  return *shape;
}

std::string error_of(std::string_view text) {
  const auto shape = parse_hf_config(text);
  REQUIRE_FALSE(shape.ok());
  CHECK(shape.status().code() == absl::StatusCode::kInvalidArgument);
  return std::string(shape.status().message());
}

TEST_CASE("parse_hf_config: a dense model", "[model_config]") {
  const ModelShape shape = shape_of(kLlama);
  CHECK(shape.num_hidden_layers == 32);
  CHECK(shape.hidden_size == 4096);
  CHECK(shape.num_attention_heads == 32);
  CHECK(shape.num_kv_heads == 8);
  CHECK(shape.head_dim == 128);  // 4096 / 32
  CHECK(shape.vocab_size == 128256);
  CHECK(shape.intermediate_size == 14336);
  CHECK_FALSE(shape.mla.has_value());
  CHECK(shape.num_moe_layers == 0);
  CHECK(shape.num_experts == 0);
  CHECK(shape.num_shared_experts == 0);
  CHECK(shape.dtype == "bfloat16");
  CHECK(shape.quantization.empty());
  CHECK(shape.cache_dtype == "auto");
  CHECK(shape.tensor_parallel_size == 1);
  CHECK(PerfModel::create(shape).has_value());
}

TEST_CASE("parse_hf_config: a mixture of experts", "[model_config]") {
  const ModelShape shape = shape_of(kQwenMoe);
  CHECK(shape.head_dim == 128);  // not 2048 / 32
  CHECK(shape.num_kv_heads == 4);
  CHECK(shape.num_experts == 128);
  CHECK(shape.num_experts_per_tok == 8);
  CHECK(shape.moe_intermediate_size == 768);
  CHECK(shape.num_shared_experts == 0);
  CHECK(shape.num_moe_layers == 48);
  CHECK(shape.quantization == "fp8");
}

TEST_CASE("parse_hf_config: latent attention and first dense layers",
          "[model_config]") {
  ModelShape shape = shape_of(kDeepSeek);
  REQUIRE(shape.mla.has_value());
  CHECK(shape.mla->kv_lora_rank == 512);
  CHECK(shape.mla->qk_rope_head_dim == 64);
  CHECK(shape.mla->qk_nope_head_dim == 128);
  CHECK(shape.mla->v_head_dim == 128);
  CHECK(shape.mla->q_lora_rank == 1536);
  CHECK(shape.num_moe_layers == 58);
  CHECK(shape.num_experts == 256);
  CHECK(shape.num_shared_experts == 1);
  CHECK(shape.quantization == "awq");

  // What vLLM estimates for this model.
  shape.tensor_parallel_size = 8;
  const auto model = PerfModel::create(shape);
  REQUIRE(model.has_value());
  const ScheduledRequest requests[] = {{64, 0, true}, {1, 4095, false}};
  const PerfStats stats = model->estimate(requests);
  CHECK(stats.num_flops_per_gpu == 688986521600);
  CHECK(stats.num_read_bytes_per_gpu == 43494682112);
  CHECK(stats.num_write_bytes_per_gpu == 679093120);
}

TEST_CASE("parse_hf_config: what is absent or null has a value",
          "[model_config]") {
  const ModelShape shape =
      shape_of(small(R"(, "head_dim": null, "intermediate_size": null,
               "kv_lora_rank": null, "num_experts": null,
               "quantization_config": null, "torch_dtype": null)"));
  CHECK(shape.num_kv_heads == 4);
  CHECK(shape.head_dim == 16);
  CHECK(shape.intermediate_size == 256);
  CHECK_FALSE(shape.mla.has_value());
  CHECK(shape.num_moe_layers == 0);
  CHECK(shape.moe_intermediate_size == 0);
  CHECK(shape.dtype == "bfloat16");
  CHECK(shape.quantization.empty());
}

TEST_CASE("parse_hf_config: a multi-modal model's language part",
          "[model_config]") {
  const ModelShape shape = shape_of(R"({
    "model_type": "some_vl", "hidden_size": 1, "torch_dtype": "float16",
    "vision_config": {"hidden_size": 2, "num_hidden_layers": 3},
    "quantization_config": {"quant_method": "fp8"},
    "text_config": {"hidden_size": 64, "num_hidden_layers": 6,
      "num_attention_heads": 4, "vocab_size": 100, "torch_dtype": "float32"}})");
  CHECK(shape.hidden_size == 64);
  CHECK(shape.num_hidden_layers == 6);
  CHECK(shape.dtype == "float16");
  CHECK(shape.quantization == "fp8");

  CHECK(shape_of(R"({"thinker_config": {"text_config": )" +
                 small(R"(, "dtype": "torch.float16")") + "}}")
            .dtype == "float16");
  CHECK(shape_of(R"({"llm_config": )" + small("") + "}").hidden_size == 64);
  CHECK(
      shape_of(R"({"text_config": null, )" + small("").substr(1)).hidden_size ==
      64);
}

TEST_CASE("parse_hf_config: other names of sizes", "[model_config]") {
  const ModelShape gpt = shape_of(
      R"({"n_embd": 768, "n_head": 12, "n_layer": 12, "vocab_size": 50257})");
  CHECK(gpt.hidden_size == 768);
  CHECK(gpt.num_attention_heads == 12);
  CHECK(gpt.num_hidden_layers == 12);
  CHECK(gpt.intermediate_size == 3072);
  CHECK(shape_of(small(R"(, "multi_query": true)")).num_kv_heads == 1);
  CHECK(shape_of(small(R"(, "multi_query": true, "num_kv_heads": 2,
                          "new_decoder_architecture": true)"))
            .num_kv_heads == 2);
  CHECK(shape_of(small(R"(, "multi_query_group_num": 2)")).num_kv_heads == 2);

  const ModelShape mixtral =
      shape_of(small(R"(, "num_local_experts": 8, "num_experts_per_tok": 2,
               "intermediate_size": 300)"));
  CHECK(mixtral.num_experts == 8);
  CHECK(mixtral.num_moe_layers == 6);
  CHECK(mixtral.moe_intermediate_size == 300);
  const ModelShape hunyuan = shape_of(
      small(R"(, "num_experts": 16, "moe_topk": [3, 3], "num_shared_experts": 2,
               "moe_intermediate_size": [40, 41])"));
  CHECK(hunyuan.num_experts_per_tok == 3);
  CHECK(hunyuan.moe_intermediate_size == 40);
  CHECK(hunyuan.num_shared_experts == 2);
}

TEST_CASE("parse_hf_config: which layers have experts", "[model_config]") {
  const auto layers = [](const std::string& rest) {
    return shape_of(small(R"(, "num_experts": 8, )" + rest)).num_moe_layers;
  };
  CHECK(layers(R"("interleave_moe_layer_step": 2)") == 3);
  CHECK(layers(R"("interleave_moe_layer_step": 0)") == 6);
  CHECK(layers(R"("moe_layer_freq": 2)") == 6);  // alone it says nothing
  CHECK(layers(R"("moe_layer_freq": 2, "first_k_dense_replace": 1)") == 2);
  CHECK(layers(R"("moe_layer_freq": [0, 1, 1, 0, 1, 1])") == 4);
  CHECK(layers(R"("moe_layer_freq": [1, 1, 1, 1, 1, 1, 1, 1])") == 6);
}

TEST_CASE("parse_hf_config: quantisation by vLLM's name", "[model_config]") {
  const auto quantization = [](const std::string& config) {
    return shape_of(small(R"(, "quantization_config": )" + config))
        .quantization;
  };
  CHECK(quantization(R"({"quant_method": "gptq", "bits": 4})") == "gptq");
  CHECK(quantization(R"({"quant_method": "compressed_tensors"})") ==
        "compressed-tensors");
  CHECK(quantization(R"({"quant_method": "auto-round"})") == "inc");
  CHECK(quantization(R"({"quant_method": "modelopt", "quant_algo": "FP8"})") ==
        "modelopt");
  CHECK(
      quantization(R"({"quant_method": "modelopt", "quant_algo": "NVFP4"})") ==
      "modelopt_fp4");
  CHECK(quantization(R"({"quantization": {"quant_algo": "MXFP8"}})") ==
        "modelopt_mxfp8");
  CHECK(quantization(R"({"quant_method": "of_tomorrow"})") == "of_tomorrow");
  CHECK(quantization("{}") == "unnamed");
  CHECK(shape_of(small(
                     R"(, "compression_config": {"quant_method":
                         "compressed-tensors"})"))
            .quantization == "compressed-tensors");
}

TEST_CASE("parse_hf_config: takes Python's numbers", "[model_config]") {
  CHECK(shape_of(small(R"(, "limits": [0.0, Infinity, -Infinity, NaN],
                          "note": "\"NaN\" and Infinity", "head_dim": 16.0)"))
            .head_dim == 16);
}

TEST_CASE("parse_hf_config: errors name file, field, value and what is allowed",
          "[model_config]") {
  CHECK(error_of("{}") ==
        "config.json: num_hidden_layers (or n_layer, n_layers, num_layers) is "
        "missing");
  CHECK(error_of(small(R"(, "intermediate_size": -1)")) ==
        "config.json: intermediate_size = -1 is not an integer from 1 to "
        "2147483647");
  CHECK(error_of(small(R"(, "head_dim": "128")")) ==
        "config.json: head_dim = \"128\" is not an integer from 1 to "
        "2147483647");
  CHECK(error_of(small(R"(, "head_dim": 1.5)")) ==
        "config.json: head_dim = 1.5 is not an integer from 1 to 2147483647");
  CHECK(error_of(small(R"(, "head_dim": 1e300)")) ==
        "config.json: head_dim = 1e+300 is not an integer from 1 to "
        "2147483647");
  CHECK(error_of(small(R"(, "num_experts": 18446744073709551615)")) ==
        "config.json: num_experts = 18446744073709551615 is not an integer "
        "from 0 to 2147483647");
  CHECK(error_of(small(R"(, "num_experts": [])")) ==
        "config.json: num_experts = [] is not an integer from 0 to 2147483647");
  CHECK(error_of(small(R"(, "num_experts": true)")) ==
        "config.json: num_experts = true is not an integer from 0 to "
        "2147483647");
  CHECK(error_of(small(R"(, "moe_layer_freq": 0)")) ==
        "config.json: moe_layer_freq = 0 is not an integer from 1 to "
        "2147483647");
  CHECK(error_of(small(R"(, "torch_dtype": 16)")) ==
        "config.json: torch_dtype = 16 is not a text");
  CHECK(error_of(small(R"(, "quantization_config": "fp8")")) ==
        "config.json: quantization_config = \"fp8\" is not an object");
  CHECK(error_of(small(R"(, "quantization_config": {"quant_method": 8})")) ==
        "config.json: quantization_config.quant_method = 8 is not a text");
  CHECK(error_of(R"({"text_config": {"num_hidden_layers": 0}})") ==
        "config.json: text_config.num_hidden_layers = 0 is not an integer "
        "from 1 to 2147483647");
  CHECK(error_of(R"({"text_config": [1]})") ==
        "config.json: text_config = [...] is not an object");
  CHECK(error_of(small(R"(, "kv_lora_rank": 512)")) ==
        "config.json: qk_rope_head_dim is missing");
  const std::string long_text(1000, 'x');
  CHECK(error_of(small(R"(, "head_dim": ")" + long_text + "\"")).size() < 200);
}

TEST_CASE("parse_hf_config: what is not JSON is refused with its place",
          "[model_config]") {
  CHECK(error_of("").find(
            "config.json: is not JSON: parse error at line 1, column 1") == 0);
  CHECK(
      error_of("{\n\"a\": }")
          .find("config.json: is not JSON: parse error at line 2, column 6") ==
      0);
  CHECK(error_of("[1, 2]") == "config.json: is not a JSON object");
  CHECK(error_of("\"\xff\"").find("config.json: is not JSON: ") == 0);
  CHECK(error_of(std::string(1000000, '[')).find("is not JSON") !=
        std::string::npos);
  const auto named = parse_hf_config("[]", "models/a.json");
  CHECK(named.status().message() == "models/a.json: is not a JSON object");
}

// A folder that goes away with the test.
class Folder {
 public:
  Folder() {
    std::string name =
        (std::filesystem::temp_directory_path() / "hf_config_XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string file(std::string_view name) const {
    return (path_ / name).string();
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

TEST_CASE("read_hf_config: reads a file, or a folder's config.json",
          "[model_config]") {
  const Folder folder;
  const std::string missing = folder.file("config.json");
  const auto none = read_hf_config(folder.path());
  CHECK(none.status().code() == absl::StatusCode::kNotFound);
  CHECK(none.status().message() == missing + ": No such file or directory");

  std::ofstream(folder.file("config.json")) << kLlama;
  std::ofstream(folder.file("other.json")) << kQwenMoe;
  std::ofstream(folder.file("bad.json")) << "{\"hidden_size\": 1}";
  const auto llama = read_hf_config(folder.path());
  REQUIRE(llama.ok());
  CHECK(llama->hidden_size == 4096);
  const auto qwen = read_hf_config(folder.file("other.json"));
  REQUIRE(qwen.ok());
  CHECK(qwen->hidden_size == 2048);
  const auto bad = read_hf_config(folder.file("bad.json"));
  CHECK(bad.status().message() ==
        folder.file("bad.json") +
            ": num_hidden_layers (or n_layer, n_layers, num_layers) is "
            "missing");
}

TEST_CASE("read_hf_config: a file without an end is refused",
          "[model_config]") {
  const auto shape = read_hf_config("/dev/zero");
  CHECK(shape.status().message() == "/dev/zero: is larger than 16 MiB");
}

}  // namespace
}  // namespace vllm_metrics
