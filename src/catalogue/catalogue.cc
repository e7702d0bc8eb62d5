#include "vllm_metrics/catalogue/catalogue.h"

#include <algorithm>
#include <array>
#include <string>

#include "src/catalogue/engine_metrics.h"
#include "src/catalogue/feature_metrics.h"
#include "src/catalogue/http_metrics.h"
#include "src/catalogue/info_metrics.h"
#include "src/catalogue/offload_metrics.h"
#include "src/catalogue/otlp_metrics.h"
#include "src/catalogue/request_metrics.h"

namespace vllm_metrics::inline v0 {
namespace {

constexpr auto kCatalogue = [] {
  std::array<MetricSpec,
             std::size(kEngineMetrics) + std::size(kRequestMetrics) +
                 std::size(kFeatureMetrics) + std::size(kOffloadMetrics) +
                 std::size(kInfoMetrics) + std::size(kHttpMetrics) +
                 std::size(kOtlpMetrics)>
      all{};
  auto end = std::ranges::copy(kEngineMetrics, all.begin()).out;
  end = std::ranges::copy(kRequestMetrics, end).out;
  end = std::ranges::copy(kFeatureMetrics, end).out;
  end = std::ranges::copy(kOffloadMetrics, end).out;
  end = std::ranges::copy(kInfoMetrics, end).out;
  end = std::ranges::copy(kHttpMetrics, end).out;
  std::ranges::copy(kOtlpMetrics, end);
  return all;
}();

constexpr MetricGroup kGroups[] = {
    {"What the scheduler holds", MetricId::kNumRequestsRunning},
    {"Caches", MetricId::kPrefixCacheQueries},
    {"Work done", MetricId::kNumPreemptions},
    {"Latency of a token", MetricId::kTimeToFirstToken},
    {"Phases of a request", MetricId::kE2eRequestLatency},
    {"Shape of a request", MetricId::kRequestPromptTokens},
    {"Life of a KV cache block", MetricId::kKvBlockLifetime},
    {"Speculative decoding", MetricId::kSpecDecodeNumDrafts},
    {"Diffusion models", MetricId::kDiffusionNumDenoisingSteps},
    {"KV transfer by NIXL", MetricId::kNixlXferTime},
    {"KV offloading", MetricId::kKvOffloadLoadBytes},
    {"KV in a Mooncake store", MetricId::kMooncakeStoreOperationTime},
    {"Simple KV offloading", MetricId::kSimpleKvOffloadSaveOutcomes},
    {"Facts", MetricId::kLoraRequestsInfo},
    {"The library about itself", MetricId::kRejectedSamples},
    {"The HTTP endpoint about itself", MetricId::kHttpRequests},
    {"The OpenTelemetry exporters about themselves", MetricId::kOtlpExports},
};

constexpr bool in_order_of_id() {
  for (std::size_t i = 0; i < std::size(kCatalogue); ++i) {
    if (static_cast<std::size_t>(kCatalogue[i].id) != i) return false;
  }
  return std::size(kCatalogue) == kMetricCount;
}
static_assert(in_order_of_id(), "spec_of() indexes by MetricId");

}  // namespace

std::span<const MetricSpec> catalogue() noexcept { return kCatalogue; }

std::span<const MetricGroup> metric_groups() noexcept { return kGroups; }

const MetricSpec& spec_of(MetricId id) noexcept {
  return kCatalogue[static_cast<std::size_t>(id)];
}

Family family_of(const MetricSpec& spec) {
  return {.name = std::string(spec.name),
          .help = std::string(spec.help),
          .kind = spec.kind,
          .number = spec.number,
          .info = spec.scope == Scope::kInfo,
          .unit = std::string(spec.unit)};
}

const MetricSpec* find_spec(std::string_view name) noexcept {
  for (const MetricSpec& spec : kCatalogue) {
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

std::vector<double> one_two_five_buckets(std::int64_t max) {
  std::vector<double> bounds;
  for (std::int64_t power = 1; power <= max; power *= 10) {
    for (const std::int64_t digit : {1, 2, 5}) {
      if (digit > max / power) return bounds;
      bounds.push_back(static_cast<double>(digit * power));
    }
    if (power > max / 10) break;
  }
  return bounds;
}

}  // namespace vllm_metrics::inline v0
