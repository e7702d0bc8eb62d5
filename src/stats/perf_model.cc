#include "vllm_metrics/stats/perf_model.h"

#include <algorithm>
#include <limits>

#include "src/stats/perf_model_builder.h"
#include "vllm_metrics/stats/perf_breakdown.h"

namespace vllm_metrics::inline v0 {
namespace {

// Factors are below 2^59 and quantities below 2^63, so a sum over all
// quantities fits.
__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t kMaxQuantity = std::numeric_limits<std::int64_t>::max();

std::uint64_t unsigned_of(std::int64_t value) noexcept {
  return value > 0 ? static_cast<std::uint64_t>(value) : 0;
}

// Nearly all of a batch. Contexts this short add up without a check.
bool is_plain_decode(const ScheduledRequest& request) noexcept {
  constexpr std::int64_t kShort = 1 << 30;
  return request.num_scheduled_tokens == 1 && !request.is_new &&
         request.num_computed_tokens >= 0 &&
         request.num_computed_tokens < kShort;
}

}  // namespace

std::optional<PerfModel> PerfModel::create(const ModelShape& shape,
                                           std::string* error) {
  std::string refusal = Builder::refusal_of(shape);
  if (refusal.empty()) {
    PerfModel model;
    Builder(shape, model).build();
    if (Builder::fits(model)) return model;
    refusal = "the sizes of the model multiply to 2^58 or more";
  }
  if (error != nullptr) *error = std::move(refusal);
  return std::nullopt;
}

PerfStats PerfModel::estimate(
    std::span<const ScheduledRequest> requests) const noexcept {
  PerfContext context;
  PerfContext decodes;
  for (const ScheduledRequest& request : requests) {
    if (is_plain_decode(request)) {
      ++decodes.num_decode_requests;
      decodes.decode_context_len += request.num_computed_tokens + 1;
    } else {
      context.add(request);
    }
  }
  decodes.decode_num_tokens = decodes.num_decode_requests;
  decodes.decode_token_context_product = decodes.decode_context_len;
  context.merge(decodes);
  return estimate(context);
}

PerfStats PerfModel::estimate(const PerfContext& context) const noexcept {
  const Quantities quantities = quantities_of(context);
  return {
      .num_flops_per_gpu = value_of(flops_.factors, quantities),
      .num_read_bytes_per_gpu = value_of(read_bytes_.factors, quantities),
      .num_write_bytes_per_gpu = value_of(write_bytes_.factors, quantities)};
}

PerfStats PerfModel::estimate(const PerfContext& context,
                              PerfBreakdown& breakdown) const {
  const Quantities quantities = quantities_of(context);
  const auto list = [&](const Sum& sum, std::vector<PerfBreakdown::Part>& out) {
    for (const Part& part : sum.parts) {
      if (part.only_with_tokens && quantities[kTokens] == 0) continue;
      out.push_back({part.name, value_of(part.factors, quantities)});
    }
  };
  breakdown.clear();
  breakdown.num_batches = 1;
  breakdown.context = context;
  list(flops_, breakdown.flops);
  list(read_bytes_, breakdown.read_bytes);
  list(write_bytes_, breakdown.write_bytes);
  PerfStats stats = estimate(context);
  stats.breakdown = &breakdown;
  return stats;
}

PerfModel::Quantities PerfModel::quantities_of(
    const PerfContext& context) const noexcept {
  const std::uint64_t tokens = unsigned_of(context.num_tokens());
  const Wide routed = Wide{tokens} * experts_per_token_ / expert_parallel_size_;
  Quantities quantities = {};
  quantities[kOne] = 1;
  quantities[kTokens] = tokens;
  quantities[kTokenContext] = unsigned_of(context.token_context_product());
  quantities[kPrefillTokens] = unsigned_of(context.prefill_num_tokens);
  quantities[kPrefillContext] = unsigned_of(context.prefill_context_len);
  quantities[kDecodeTokens] = unsigned_of(context.decode_num_tokens);
  quantities[kDecodeContext] = unsigned_of(context.decode_context_len);
  quantities[kLogitsTokens] = unsigned_of(context.num_logits_tokens());
  quantities[kRoutedTokens] =
      static_cast<std::uint64_t>(std::min<Wide>(routed, kMaxQuantity));
  quantities[kActiveExperts] =
      std::min(quantities[kRoutedTokens], experts_per_gpu_);
  return quantities;
}

double PerfModel::value_of(const DoubledFactors& factors,
                           const Quantities& quantities) noexcept {
  Wide doubled = 0;
  for (std::size_t i = 0; i < quantities.size(); ++i) {
    doubled += Wide{factors[i]} * quantities[i];
  }
  const Wide value = doubled / 2;
  return static_cast<double>(value);
}

}  // namespace vllm_metrics::inline v0
