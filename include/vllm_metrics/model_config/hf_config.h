#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "vllm_metrics/export.h"
#include "vllm_metrics/stats/model_shape.h"

namespace vllm_metrics::inline v0 {

// The shape of a model from its Hugging Face config.json, for PerfModel:
//
//   auto shape = vllm_metrics::read_hf_config("/models/llama-3.1-8b");
//   if (!shape.ok()) ...
//   shape->tensor_parallel_size = 2;  // not in the file: the engine's choice,
//   shape->cache_dtype = "fp8";       // like all of parallelism and the cache
//   auto model = vllm_metrics::PerfModel::create(*shape);
//
// What is read, and what counts when it is absent (or null):
//   - A multi-modal model's language part: `text_config`, `llm_config` or
//     `language_config`, inside `thinker_config` too.
//   - num_hidden_layers, hidden_size, num_attention_heads and vocab_size, or
//     the names that GPT-2 and MPT have for them: needed.
//   - num_key_value_heads and its other names: 1 with `multi_query`, else all
//     heads. head_dim: hidden size over heads.
//   - intermediate_size: four times the hidden size.
//   - Experts: none. Their width: intermediate_size. Which layers have them:
//     see count_moe_layers(); where moe_layer_freq is a list, a layer each,
//     those that are not 0.
//   - Latent attention (MLA): with kv_lora_rank; then its other sizes are
//     needed.
//   - torch_dtype or dtype: bfloat16, as vLLM runs such models.
//   - quantization_config: none. `modelopt` is told apart by its quant_algo; a
//     quantisation without a name is "unnamed", which PerfModel does not know.
// Of a list of sizes, one for each layer or modality, the first counts. The
// JSON may have Python's NaN and Infinity.
//
// Thread-safety: free functions; any thread.
// Errors: NotFound or the system's reason for a file that cannot be read;
// InvalidArgument for what is not JSON and for a field that is needed and
// missing or not what it should be. Messages name file, field, value and what
// is allowed: "config.json: hidden_size = -1 is not an integer from 1 to
// 2147483647".
// Definition: vLLM ModelConfig and the parsers of v1/metrics/perf.py.

// `text`: the file's content. `file`: what messages call it.
[[nodiscard]] VLLM_METRICS_EXPORT absl::StatusOr<ModelShape> parse_hf_config(
    std::string_view text, std::string_view file = "config.json");

// `path`: the file, or the folder with a config.json. At most 16 MiB.
[[nodiscard]] VLLM_METRICS_EXPORT absl::StatusOr<ModelShape> read_hf_config(
    const std::string& path);

}  // namespace vllm_metrics::inline v0
