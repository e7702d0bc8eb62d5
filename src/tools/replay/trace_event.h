#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "vllm_metrics/catalogue/metric_spec.h"
#include "vllm_metrics/loggers/stat_logger.h"
#include "vllm_metrics/stats/cache_stats.h"
#include "vllm_metrics/stats/iteration_stats.h"
#include "vllm_metrics/stats/scheduler_stats.h"

namespace vllm_metrics::replay {

// Trace format 1 as structs: one for each `op`.

enum class TextLogger { kNone, kPerEngine, kAggregated };

// The first line: what the loggers are built from.
struct TraceConfig {
  WireVersion profile;
  std::string model_name;
  std::int64_t max_model_len = 0;
  std::vector<int> engine_indexes = {0};
  TextLogger logger = TextLogger::kPerEngine;
  int client_count = 1;
  bool compute_nans_in_logits = false;
  std::optional<std::int64_t> num_gpu_blocks;
  std::vector<std::pair<std::string, std::string>> cache_config;
};

struct InitEvent {};

struct RecordEvent {
  int engine = 0;
  std::optional<SchedulerStats> scheduler;
  std::optional<IterationStats> iteration;
  std::optional<MultiModalCacheStats> mm_cache;
};

struct SleepEvent {
  SleepState state;
};

struct LogEvent {};

struct TickEvent {};

struct ParentRef {
  std::string id;
  std::int64_t n = 1;
};

struct RequestEvent {
  std::string id;
  double arrival = 0.0;  // wall
  std::int64_t prompt_len = 0;
  std::optional<std::int64_t> max_tokens;
  std::optional<ParentRef> parent;
};

// What one request got out of a batch.
struct RequestOutput {
  std::string id;
  std::int64_t tokens = 0;
  std::vector<EngineCoreEvent> events;
  std::optional<PrefillStats> prefill;
  std::int64_t nans = 0;
  std::optional<FinishReason> finish;
};

struct OutputEvent {
  int engine = 0;
  double ts = 0.0;  // engine clock
  std::vector<RequestOutput> outputs;
  std::optional<SchedulerStats> scheduler;
  std::optional<MultiModalCacheStats> mm_cache;
};

struct AbortEvent {
  std::vector<std::string> ids;
};

struct SnapshotEvent {};

using TraceAction = std::variant<TraceConfig, InitEvent, RecordEvent,
                                 SleepEvent, LogEvent, TickEvent, RequestEvent,
                                 OutputEvent, AbortEvent, SnapshotEvent>;

// The clocks that an event sets before it is applied; unset: as they were.
struct ClockReading {
  std::optional<double> wall;           // seconds since 1970
  std::optional<double> mono;           // seconds
  std::optional<std::int64_t> mono_ns;  // the clock of the KV residency sampler
};

struct TraceEvent {
  ClockReading clocks;
  TraceAction action;
};

}  // namespace vllm_metrics::replay
