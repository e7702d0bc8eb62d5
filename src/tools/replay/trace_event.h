#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "vllm_metrics/catalogue/metric_spec.h"
#include "vllm_metrics/loggers/options.h"
#include "vllm_metrics/loggers/stat_logger.h"
#include "vllm_metrics/stats/cache_stats.h"
#include "vllm_metrics/stats/iteration_stats.h"
#include "vllm_metrics/stats/model_shape.h"
#include "vllm_metrics/stats/nixl_stats.h"
#include "vllm_metrics/stats/perf_context.h"
#include "vllm_metrics/stats/scheduler_stats.h"

namespace vllm_metrics::replay {

// Trace format 1 as structs: one for each `op`.

enum class TextLogger { kNone, kPerEngine, kAggregated };

enum class KvConnector { kNone, kNixl };

// The first line: what the loggers are built from.
struct TraceConfig {
  WireVersion profile;
  std::string vllm_version;
  std::optional<std::string> show_hidden_metrics_for_version;
  std::string model_name;
  std::int64_t max_model_len = 0;
  std::vector<int> engine_indexes = {0};
  TextLogger logger = TextLogger::kPerEngine;
  int client_count = 1;
  bool compute_nans_in_logits = false;
  bool kv_cache_metrics = false;
  std::optional<std::int64_t> max_loras;
  std::optional<std::int64_t> num_speculative_tokens;
  bool is_diffusion = false;
  KvConnector kv_connector = KvConnector::kNone;
  bool enable_mfu_metrics = false;
  bool debug_mfu = false;
  std::optional<ModelShape> model;
  std::optional<CudaGraphConfig> cudagraph;
  std::optional<std::int64_t> num_gpu_blocks;
  std::vector<std::pair<std::string, std::string>> cache_config;
};

struct InitEvent {};

// A LoraAdapterCount with a name of its own.
struct AdapterCount {
  std::string name;
  std::int64_t num_requests = 0;
};

// A step's SchedulerStats, and apart from it what that struct only points to
// and what an engine has to add.
struct TraceScheduler {
  SchedulerStats stats;
  std::vector<AdapterCount> waiting_lora_adapters;
  std::vector<AdapterCount> running_lora_adapters;
  std::string runtime_mode;  // of stats.cudagraph_stats
  std::optional<NixlStats> kv_connector_stats;
  // What stats.perf_stats is to be estimated from.
  std::optional<std::vector<ScheduledRequest>> scheduled;
  bool kv_drain = false;  // add the events of the engine's residency sampler
};

struct RecordEvent {
  int engine = 0;
  std::optional<TraceScheduler> scheduler;
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
  std::optional<std::string> lora;
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
  std::optional<TraceScheduler> scheduler;
  std::optional<MultiModalCacheStats> mm_cache;
};

struct AbortEvent {
  std::vector<std::string> ids;
};

// One call on the residency sampler of an engine.
struct KvBlockEvent {
  enum class Call { kAllocated, kAccessed, kEvicted, kReset };
  int engine = 0;
  Call call = Call::kReset;
  std::int64_t block = 0;
};

struct SnapshotEvent {};

using TraceAction =
    std::variant<TraceConfig, InitEvent, RecordEvent, SleepEvent, LogEvent,
                 TickEvent, RequestEvent, OutputEvent, AbortEvent, KvBlockEvent,
                 SnapshotEvent>;

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
