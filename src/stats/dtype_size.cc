#include "src/stats/dtype_size.h"

#include <algorithm>
#include <iterator>

namespace vllm_metrics::inline v0 {
namespace {

struct Size {
  std::string_view name;
  std::uint64_t size;
};

template <std::size_t kCount>
std::optional<std::uint64_t> find(const Size (&sizes)[kCount],
                                  std::string_view name) noexcept {
  const Size* found =
      std::find_if(std::begin(sizes), std::end(sizes),
                   [name](const Size& size) { return size.name == name; });
  if (found == std::end(sizes)) return std::nullopt;
  return found->size;
}

// Bytes.
constexpr Size kModelDtypes[] = {
    {"bfloat16", 2}, {"float16", 2}, {"half", 2}, {"float32", 4}, {"float", 4},
};

// Bytes.
constexpr Size kPackedCacheDtypes[] = {
    {"fp8", 1},
    {"fp8_e4m3", 1},
    {"fp8_e5m2", 1},
    {"fp8_ds_mla", 1},
    {"fp8_inc", 1},
    {"fp8_per_token_head", 1},
    {"int8", 1},
    {"int8_per_token_head", 1},
    {"int4_per_token_head", 1},
    {"nvfp4", 1},
    {"turboquant_k8v4", 1},
    {"turboquant_4bit_nc", 1},
    {"turboquant_k3v4_nc", 1},
    {"turboquant_3bit_nc", 1},
};

// Half bytes.
constexpr Size kQuantizations[] = {
    {"fp8", 2},          {"fbgemm_fp8", 2},
    {"ptpc_fp8", 2},     {"fp_quant", 2},
    {"modelopt", 2},     {"modelopt_mxfp8", 2},
    {"experts_int8", 2}, {"mxfp4", 1},
    {"awq", 1},          {"awq_marlin", 1},
    {"gptq", 1},         {"gptq_marlin", 1},
    {"bitsandbytes", 1}, {"modelopt_fp4", 1},
    {"petit_nvfp4", 1},  {"compressed-tensors", 1},
    {"torchao", 1},      {"quark", 1},
    {"moe_wna16", 1},    {"inc", 1},
};

}  // namespace

std::optional<std::uint64_t> model_dtype_bytes(
    std::string_view dtype) noexcept {
  return find(kModelDtypes, dtype);
}

std::optional<std::uint64_t> cache_dtype_bytes(
    std::string_view dtype, std::uint64_t model_bytes) noexcept {
  if (dtype == "auto") return model_bytes;
  if (const auto bytes = model_dtype_bytes(dtype)) return bytes;
  return find(kPackedCacheDtypes, dtype);
}

std::optional<std::uint64_t> quantized_half_bytes(
    std::string_view method) noexcept {
  return find(kQuantizations, method);
}

}  // namespace vllm_metrics::inline v0
