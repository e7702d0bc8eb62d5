#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vllm_metrics/export.h"
#include "vllm_metrics/stats/model_shape.h"
#include "vllm_metrics/stats/perf_context.h"
#include "vllm_metrics/stats/perf_stats.h"

namespace vllm_metrics::inline v0 {

struct PerfBreakdown;

// Estimates what a step costs one GPU: floating point operations, and bytes
// read from and written to its memory. An estimate from the model's shape,
// not a measurement: weights and activations pass through memory once a step.
//
// Everything that depends on the model alone is multiplied out once, so an
// estimate is a few dozen multiplications, however many layers there are.
//
// Thread-safety: const after construction; any thread, also at the same time.
// Errors: create() only. Estimates are exact integers, then rounded to the
// nearest double (exact up to 2^53).
// Definition: vLLM ModelMetrics. vLLM v1/metrics/perf.py.
class VLLM_METRICS_EXPORT PerfModel {
 public:
  // Empty for a shape that makes no sense; `error`, unless null, then gets the
  // field, its value and what is allowed: "hidden_size = 0 is not in 1 to
  // 2147483647".
  [[nodiscard]] static std::optional<PerfModel> create(
      const ModelShape& shape, std::string* error = nullptr);

  // The requests of one step. None: the step still reads all weights.
  PerfStats estimate(std::span<const ScheduledRequest> requests) const noexcept;
  PerfStats estimate(const PerfContext& context) const noexcept;

  // The same with its parts, for the debug record: replaces what is in
  // `breakdown`, and the result points to it.
  PerfStats estimate(const PerfContext& context,
                     PerfBreakdown& breakdown) const;

  // Whether a part is in the estimate. Attention and feed-forward are left out
  // for a quantisation that is not known; feed-forward also for layers of
  // experts without experts, experts per token or their width.
  bool has_attention() const noexcept { return has_attention_; }
  bool has_feed_forward() const noexcept { return has_feed_forward_; }

  // What the engine should log as a WARNING; empty: nothing.
  const std::string& warning() const noexcept { return warning_; }

 private:
  class Builder;

  // What a part is multiplied by: 1, or a sum over the step's requests.
  enum Quantity {
    kOne,
    kTokens,
    kTokenContext,
    kPrefillTokens,
    kPrefillContext,
    kDecodeTokens,
    kDecodeContext,
    kLogitsTokens,
    kRoutedTokens,   // tokens times experts per token, this GPU's share
    kActiveExperts,  // experts of this GPU that get a token
    kNumQuantities,
  };
  using Quantities = std::array<std::uint64_t, kNumQuantities>;

  // Twice the factor of each quantity, so that half bytes are integers.
  using DoubledFactors = std::array<std::uint64_t, kNumQuantities>;

  struct Part {
    std::string_view name;
    DoubledFactors factors = {};
    bool only_with_tokens = false;  // not listed for a step without tokens
  };
  struct Sum {
    std::vector<Part> parts;
    DoubledFactors factors = {};  // of all parts
  };

  PerfModel() = default;
  Quantities quantities_of(const PerfContext& context) const noexcept;
  static double value_of(const DoubledFactors& factors,
                         const Quantities& quantities) noexcept;

  Sum flops_;
  Sum read_bytes_;
  Sum write_bytes_;
  std::uint64_t experts_per_token_ = 0;
  std::uint64_t expert_parallel_size_ = 1;
  std::uint64_t experts_per_gpu_ = 0;
  bool has_attention_ = false;
  bool has_feed_forward_ = false;
  std::string warning_;
};

}  // namespace vllm_metrics::inline v0
