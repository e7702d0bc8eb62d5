#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace vllm_metrics::inline v0 {

// Bytes of one number of a model's dtype, as vLLM spells it; empty: unknown.
std::optional<std::uint64_t> model_dtype_bytes(std::string_view dtype) noexcept;

// Bytes of one number in a KV cache of the given dtype, `model_bytes` for
// "auto"; empty: unknown. Packed kinds count a whole byte, as in vLLM.
std::optional<std::uint64_t> cache_dtype_bytes(
    std::string_view dtype, std::uint64_t model_bytes) noexcept;

// Half bytes of one weight under a quantisation method; empty: unknown.
// Methods with several widths count their usual one.
std::optional<std::uint64_t> quantized_half_bytes(
    std::string_view method) noexcept;

}  // namespace vllm_metrics::inline v0
