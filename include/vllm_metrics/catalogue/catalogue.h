#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "vllm_metrics/catalogue/metric_spec.h"
#include "vllm_metrics/export.h"

namespace vllm_metrics::inline v0 {

inline constexpr std::size_t kMetricCount =
    static_cast<std::size_t>(MetricId::kOtlpLostItems) + 1;

// Every family this library knows, each once, in the order of the page and of
// MetricId. The registration, the docs and the tests all read this list.
VLLM_METRICS_EXPORT std::span<const MetricSpec> catalogue() noexcept;

// Entries that belong together, for whoever reads them: those from `first` up
// to the next group's.
struct MetricGroup {
  std::string_view title;
  MetricId first;
};
VLLM_METRICS_EXPORT std::span<const MetricGroup> metric_groups() noexcept;

VLLM_METRICS_EXPORT const MetricSpec& spec_of(MetricId id) noexcept;

// The entry with this wire name; null when there is none.
VLLM_METRICS_EXPORT const MetricSpec* find_spec(std::string_view name) noexcept;

// What the registry wants to know of an entry.
VLLM_METRICS_EXPORT Family family_of(const MetricSpec& spec);

// 1, 2, 5, 10, 20, 50, ... up to and including `max`; empty when `max` < 1.
// Definition: vLLM build_1_2_5_buckets.
VLLM_METRICS_EXPORT std::vector<double> one_two_five_buckets(std::int64_t max);

}  // namespace vllm_metrics::inline v0
