#include "vllm_metrics/stats/model_shape.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>

namespace vllm_metrics {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

TEST_CASE("count_moe_layers: all layers if there are experts", "[stats]") {
  CHECK(count_moe_layers({.num_hidden_layers = 48, .num_experts = 128}) == 48);
  CHECK(count_moe_layers({.num_hidden_layers = 48}) == 0);
  CHECK(count_moe_layers({.num_hidden_layers = -1, .num_experts = 8}) == 0);
}

TEST_CASE("count_moe_layers: a step takes every n-th layer", "[stats]") {
  MoeLayerPattern pattern = {.num_hidden_layers = 49, .num_experts = 16};
  pattern.interleave_moe_layer_step = 2;
  CHECK(count_moe_layers(pattern) == 24);
  pattern.interleave_moe_layer_step = 50;
  CHECK(count_moe_layers(pattern) == 0);
  pattern.interleave_moe_layer_step = 0;  // not said
  CHECK(count_moe_layers(pattern) == 49);
}

TEST_CASE("count_moe_layers: a frequency counts with the first dense layers",
          "[stats]") {
  MoeLayerPattern pattern = {.num_hidden_layers = 61, .num_experts = 256};
  pattern.moe_layer_freq = 1;
  CHECK(count_moe_layers(pattern) == 61);  // first_k_dense_replace is absent
  pattern.first_k_dense_replace = 3;
  CHECK(count_moe_layers(pattern) == 58);
  pattern.first_k_dense_replace = 61;
  CHECK(count_moe_layers(pattern) == 0);
  pattern.first_k_dense_replace = 1000;
  CHECK(count_moe_layers(pattern) == 0);
  pattern.first_k_dense_replace = -5;
  CHECK(count_moe_layers(pattern) == 61);
}

TEST_CASE("count_moe_layers: agrees with counting one by one", "[stats]") {
  for (std::int64_t layers = 0; layers < 12; ++layers) {
    for (std::int64_t freq = 1; freq < 6; ++freq) {
      for (std::int64_t first = -1; first < 14; ++first) {
        std::int64_t expected = 0;
        for (std::int64_t i = 0; i < layers; ++i) {
          if (i >= first && i % freq == 0) ++expected;
        }
        CAPTURE(layers, freq, first);
        CHECK(count_moe_layers({.num_hidden_layers = layers,
                                .moe_layer_freq = freq,
                                .first_k_dense_replace = first}) == expected);
      }
    }
  }
}

TEST_CASE("count_moe_layers: the frequency comes last", "[stats]") {
  // Also without experts, as vLLM has it.
  CHECK(count_moe_layers({.num_hidden_layers = 10,
                          .interleave_moe_layer_step = 2,
                          .moe_layer_freq = 1,
                          .first_k_dense_replace = 1}) == 9);
}

TEST_CASE("count_moe_layers: any numbers are safe", "[stats]") {
  CHECK(count_moe_layers({.num_hidden_layers = kMax,
                          .moe_layer_freq = kMax,
                          .first_k_dense_replace = kMax}) == 0);
  CHECK(count_moe_layers({.num_hidden_layers = 4,
                          .moe_layer_freq = 0,
                          .first_k_dense_replace = 0}) == 0);
}

}  // namespace
}  // namespace vllm_metrics
