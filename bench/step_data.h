#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "vllm_metrics/catalogue/metric_spec.h"
#include "vllm_metrics/stats/iteration_stats.h"
#include "vllm_metrics/stats/nixl_stats.h"
#include "vllm_metrics/stats/scheduler_stats.h"

namespace vllm_metrics::bench {

// Where a number of a step lands: a family, and the value of its closed label.
struct Place {
  MetricId id;
  std::size_t label_value = 0;
};

inline constexpr std::array<Place, 5> kGauges{{
    {MetricId::kNumRequestsRunning},
    {MetricId::kNumRequestsWaiting},
    {MetricId::kNumRequestsWaitingByReason, 0},
    {MetricId::kNumRequestsWaitingByReason, 1},
    {MetricId::kKvCacheUsagePerc},
}};

inline constexpr std::array<Place, 14> kCounters{{
    {MetricId::kPrefixCacheQueries},
    {MetricId::kPrefixCacheHits},
    {MetricId::kExternalPrefixCacheQueries},
    {MetricId::kExternalPrefixCacheHits},
    {MetricId::kEstimatedFlopsPerGpu},
    {MetricId::kEstimatedReadBytesPerGpu},
    {MetricId::kEstimatedWriteBytesPerGpu},
    {MetricId::kNumPreemptions},
    {MetricId::kPromptTokens},
    {MetricId::kPromptTokensBySource, 0},
    {MetricId::kPromptTokensBySource, 1},
    {MetricId::kPromptTokensBySource, 2},
    {MetricId::kPromptTokensCached},
    {MetricId::kGenerationTokens},
}};

// One observation each for every request that ended.
inline constexpr std::array<MetricId, 13> kRequestHistograms{
    MetricId::kE2eRequestLatency,
    MetricId::kRequestQueueTime,
    MetricId::kRequestPrefillTime,
    MetricId::kRequestInferenceTime,
    MetricId::kRequestDecodeTime,
    MetricId::kRequestTimePerOutputToken,
    MetricId::kRequestPromptTokens,
    MetricId::kRequestPrefillKvComputedTokens,
    MetricId::kRequestGenerationTokens,
    MetricId::kRequestParamsMaxTokens,
    MetricId::kRequestNumPreemptions,
    MetricId::kRequestMaxNumGenerationTokens,
    MetricId::kRequestParamsN,
};

inline constexpr std::int64_t kMaxModelLen = 131072;
inline constexpr std::int64_t kSpecTokens = 4;

// The numbers of a step, in the order of the tables above: what prometheus-cpp
// is given, which so need not walk the stats structs.
struct FlatStep {
  struct Ended {
    std::size_t reason;
    std::array<double, kRequestHistograms.size()> values;
  };
  std::array<double, kGauges.size()> gauges;
  std::array<double, kCounters.size()> counters;
  double step_tokens;                    // MetricId::kIterationTokens
  std::span<const double> first_tokens;  // seconds, MetricId::kTimeToFirstToken
  std::span<const double> latencies;  // seconds, MetricId::kInterTokenLatency
  std::vector<Ended> ended;
};

// One step, as the library takes it and flat; both share the latencies.
struct Step {
  SchedulerStats scheduler;
  IterationStats iteration;
  FlatStep flat;
  NixlStats transfers;  // of a step with every feature
};

struct StepShape {
  std::size_t batch = 256;        // requests with a later output
  bool equal = false;             // all of a step's latencies are one number
  std::size_t first_outputs = 0;  // requests with their first output
  std::size_t ended = 2;          // requests that end
  // Drafts, adapters, a KV transfer, an evicted block, a CUDA graph.
  bool every_feature = false;
};

// Steps to take in turns, half a megabyte of them at most. Every scalar moves
// in each, more than in a real decode step.
std::vector<Step> make_steps(const StepShape& shape);

// Hands out the elements of a vector round and round.
template <class T>
class Carousel {
 public:
  explicit Carousel(const std::vector<T>& items) : items_(items) {}
  const T& next() noexcept {
    const T& item = items_[at_];
    at_ = at_ + 1 == items_.size() ? 0 : at_ + 1;
    return item;
  }

 private:
  const std::vector<T>& items_;
  std::size_t at_ = 0;
};

}  // namespace vllm_metrics::bench
