#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace vllm_metrics::inline v0 {

// Why a request ended; the values and their order are vLLM's FinishReason.
enum class FinishReason {
  kStop,        // end of sequence, or a stop string
  kLength,      // max_tokens or max_model_len reached
  kAbort,       // the client went away, or the engine dropped the request
  kError,       // a failure while serving it
  kRepetition,  // endless repetition was detected
};

// As on the wire: label `finished_reason`, in the order of the enum.
inline constexpr std::array<std::string_view, 5> kFinishReasonNames = {
    "stop", "length", "abort", "error", "repetition"};

// Where it is among the names. What is no reason at all counts as an error.
constexpr std::size_t index_of(FinishReason reason) noexcept {
  const auto index = static_cast<std::size_t>(reason);
  return index < kFinishReasonNames.size()
             ? index
             : static_cast<std::size_t>(FinishReason::kError);
}

constexpr std::string_view name_of(FinishReason reason) noexcept {
  return kFinishReasonNames[index_of(reason)];
}

}  // namespace vllm_metrics::inline v0
