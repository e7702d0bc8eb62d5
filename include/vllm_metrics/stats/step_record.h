#pragma once

#include "vllm_metrics/stats/iteration_stats.h"
#include "vllm_metrics/stats/scheduler_stats.h"

namespace vllm_metrics::inline v0 {

// One engine step, as every stat logger gets it. All it points to belongs to
// the caller of StatLoggerManager::record() and dies when that returns.
struct StepRecord {
  int engine_index = 0;
  const SchedulerStats* scheduler =
      nullptr;  // null: the scheduler's state did not change
  const IterationStats* iteration = nullptr;  // null: the step had no outputs
  const MultiModalCacheStats* mm_cache =
      nullptr;  // null: no multi-modal lookups
};

}  // namespace vllm_metrics::inline v0
