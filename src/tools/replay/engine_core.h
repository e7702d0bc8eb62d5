#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/tools/replay/trace_event.h"
#include "vllm_metrics/stats/kv_residency_sampler.h"
#include "vllm_metrics/stats/perf_breakdown.h"
#include "vllm_metrics/stats/perf_model.h"
#include "vllm_metrics/stats/scheduler_stats.h"

namespace vllm_metrics::replay {

// What engine cores add to the statistics of a trace: the estimated work of a
// step, and the blocks that were evicted from their KV caches.
//
// Thread-safety: none.
class EngineCore {
 public:
  // Block ids of a trace are below this.
  static constexpr std::int64_t kMaxBlocks = std::int64_t{1} << 24;

  // InvalidArgument: a model shape that makes no sense.
  static absl::StatusOr<EngineCore> create(const TraceConfig& config);

  // At `now_ns` of the sampler's clock. InvalidArgument: no such block.
  absl::Status apply(const KvBlockEvent& event, std::int64_t now_ns);

  // The statistics of a step of `engine`, complete. They point into `scheduler`
  // and this object, until the next call. InvalidArgument: there is no model to
  // estimate from.
  absl::StatusOr<SchedulerStats*> complete(const TraceScheduler& scheduler,
                                           int engine);

  // Of the model's shape; empty: nothing.
  std::string_view warning() const;

 private:
  EngineCore() = default;
  absl::Status estimate(const std::vector<ScheduledRequest>& scheduled);

  std::optional<PerfModel> model_;
  bool wants_breakdown_ = false;
  PerfBreakdown breakdown_;
  std::map<int, KvResidencySampler> samplers_;  // by engine index
  SchedulerStats stats_;
};

}  // namespace vllm_metrics::replay
