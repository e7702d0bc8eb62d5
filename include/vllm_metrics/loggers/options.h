#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "vllm_metrics/catalogue/metric_spec.h"
#include "vllm_metrics/loggers/clock.h"
#include "vllm_metrics/loggers/log_sink.h"
#include "vllm_metrics/loggers/stat_logger.h"
#include "vllm_metrics/loggers/step_metrics.h"

namespace vllm_metrics::inline v0 {

class Registry;
struct StatLoggerOptions;

// Makes one logger for one engine index; called for each of them.
using PerEngineStatLoggerFactory =
    std::function<absl::StatusOr<std::unique_ptr<StatLoggerBase>>(
        const StatLoggerOptions&, int engine_index)>;

// Makes one logger for all engine indexes; called once.
using AggregateStatLoggerFactory =
    std::function<absl::StatusOr<std::unique_ptr<StatLoggerBase>>(
        const StatLoggerOptions&)>;

using StatLoggerFactory =
    std::variant<PerEngineStatLoggerFactory, AggregateStatLoggerFactory>;

// Other buckets for one histogram family of the catalogue.
struct BucketOverride {
  std::string family;  // wire name, e.g. "vllm:e2e_request_latency_seconds"
  std::vector<double> bounds;  // rising and finite; unit of the family
};

// What StatLoggerManager::create() and every built-in logger is made from.
// Field names are vLLM's where it has the same switch.
struct StatLoggerOptions {
  // --- The engines -------------------------------------------------------
  std::string
      model_name;  // served model name, the label `model_name`; required
  std::int64_t max_model_len =
      0;  // tokens, 1 or more: the last bucket of token histograms; required
  std::vector<int> engine_indexes = {
      0};  // data-parallel ranks of this front end; empty means {0}

  // Label names and values of vllm:cache_config_info, in order, e.g.
  // {"block_size", "16"}. Read when log_engine_initialized() is called.
  std::vector<std::pair<std::string, std::string>> cache_config;
  std::optional<std::int64_t>
      num_gpu_blocks;  // for the log record of log_engine_initialized()

  // --- What is measured --------------------------------------------------
  bool log_stats =
      true;  // false: no logger at all; record() and log() do nothing
  bool kv_cache_metrics =
      false;  // families of KV block residency; needs log_stats
  bool compute_nans_in_logits =
      false;  // count corrupted requests (page and log line)

  // --- The loggers -------------------------------------------------------
  bool default_loggers =
      true;  // the text logger; off: only `factories` and the Prometheus logger
  bool aggregate_engine_logging =
      false;  // one text record for all engines instead of one each
  int client_count =
      1;  // front ends that share the engines; above 1 no text logger
  std::vector<StatLoggerFactory>
      factories;  // custom loggers, called before the default ones

  // --- The page ----------------------------------------------------------
  std::shared_ptr<Registry>
      registry;  // where series go; null: the manager makes one
  WireVersion wire_version = {0, 30};   // which families: 0.27 to 0.30
  std::vector<BucketOverride> buckets;  // instead of vLLM's bounds
  std::vector<double> latency_buckets;  // for all families of seconds not named
                                        // in `buckets`; empty: vLLM's
  bool self_metrics = true;  // the library's own families, `vllm_metrics_*`
  StepMetrics
      step_metrics;  // families of the engine's own, recorded with the step

  // --- Surroundings ------------------------------------------------------
  std::shared_ptr<const Clock> clock;  // null: the machine's clocks
  std::shared_ptr<LogSink> log_sink;   // null: standard error, INFO and above
};

}  // namespace vllm_metrics::inline v0
