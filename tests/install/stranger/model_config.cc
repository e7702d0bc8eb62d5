// A model's shape from its config.json, and what one step of it costs.
#include <cstdio>

#include "vllm_metrics/model_config/hf_config.h"
#include "vllm_metrics/stats/perf_model.h"

int main() {
  const auto shape = vllm_metrics::parse_hf_config(
      R"({"num_hidden_layers": 1, "hidden_size": 4, "num_attention_heads": 2,
          "vocab_size": 8, "torch_dtype": "bfloat16"})");
  if (!shape.ok()) {
    std::puts(shape.status().ToString().c_str());
    return 1;
  }
  const auto model = vllm_metrics::PerfModel::create(*shape);
  if (!model.has_value()) return 1;
  // Without requests a step reads its weights: 4 * 12 + 16 of the attention,
  // 3 * 4 * 16 of the feed-forward layer, 4 * 8 of the unembedding; 2 bytes.
  const double bytes =
      model->estimate(vllm_metrics::PerfContext{}).num_read_bytes_per_gpu;
  std::printf("%.0f bytes\n", bytes);
  return bytes == 2 * (4 * 12 + 16 + 3 * 4 * 16 + 4 * 8) ? 0 : 1;
}
