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
#include "vllm_metrics/loggers/kv_connector.h"
#include "vllm_metrics/loggers/log_sink.h"
#include "vllm_metrics/loggers/stat_logger.h"
#include "vllm_metrics/loggers/step_metrics.h"
#include "vllm_metrics/primitives/native_buckets.h"

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

// How the engine captured its CUDA graphs, for the log.
struct CudaGraphConfig {
  std::string mode = {};                         // e.g. "FULL_AND_PIECEWISE"
  std::vector<std::int64_t> capture_sizes = {};  // tokens, in capture order
};

// Other buckets for one histogram family of the catalogue.
struct BucketOverride {
  // Wire name, e.g. "vllm:e2e_request_latency_seconds".
  std::string family = {};
  std::vector<double> bounds = {};  // rising and finite; unit of the family
};

// Native buckets beside the classic ones of one histogram family of the
// catalogue. Its values count as zero when they are below zero.
struct NativeOverride {
  // Wire name, e.g. "vllm:e2e_request_latency_seconds".
  std::string family = {};
  NativeHistogramOptions options = {};
};

// What StatLoggerManager::create() and every built-in logger is made from.
// Field names are vLLM's where it has the same switch.
struct StatLoggerOptions {
  // --- The engines -------------------------------------------------------

  // Served model name, the label `model_name`. Required.
  std::string model_name = {};

  // Tokens, 1 or more: where the buckets of token histograms end. Required.
  std::int64_t max_model_len = 0;

  // Data-parallel ranks of this front end; none means {0}.
  std::vector<int> engine_indexes = {0};

  // Label names and values of vllm:cache_config_info, in order, e.g.
  // {"block_size", "16"}. Shown when log_engine_initialized() was called.
  std::vector<std::pair<std::string, std::string>> cache_config = {};

  // KV blocks of an engine; log_engine_initialized() writes it to the log.
  std::optional<std::int64_t> num_gpu_blocks = {};

  // --- What is measured --------------------------------------------------

  // False: no logger at all; record() and log() do nothing.
  bool log_stats = true;

  // Families of KV block residency (SchedulerStats::kv_cache_eviction_events).
  // Needs log_stats.
  bool kv_cache_metrics = false;

  // Most tokens of a speculative draft, 0 or more. None: no speculation.
  std::optional<std::int64_t> num_speculative_tokens = {};

  // A diffusion model: its steps come in SchedulerStats::spec_decoding_stats
  // too, and are shown under its own names.
  bool is_diffusion = false;

  // LoRA adapters that can be loaded at once, 1 or more. None: no LoRA.
  std::optional<std::int64_t> max_loras = {};

  // Of a KV connector (SchedulerStats::kv_connector_stats); of several at once
  // a MultiConnectorMetrics. Null: none.
  std::shared_ptr<const KvConnectorMetrics> kv_connector = {};

  // Count requests with NaN logits, on the page and in the text record.
  bool compute_nans_in_logits = false;

  // --- The loggers -------------------------------------------------------

  // Write the text record. False: `factories`, plugins and the Prometheus
  // logger only.
  bool default_loggers = true;

  // One text record for all engines instead of one for each.
  bool aggregate_engine_logging = false;

  // Front ends that share the engines. Above 1 each of them sees only a part,
  // and no text record is written.
  int client_count = 1;

  // Write a record of the estimated work (SchedulerStats::perf_stats) with the
  // text record of each engine; not in the aggregated one.
  bool enable_mfu_metrics = false;

  // With it, where the work goes, as a DEBUG record (PerfStats::breakdown).
  bool debug_mfu_metrics = false;

  // The engine's CUDA graph configuration: with it, a table of how steps were
  // padded and run (SchedulerStats::cudagraph_stats) follows the text record.
  std::optional<CudaGraphConfig> cudagraph = {};

  // Custom loggers, called before the default ones, in this order.
  std::vector<StatLoggerFactory> factories = {};

  // Shared objects whose stat loggers are called after those of `factories`
  // (load_plugin). One that is missing, of another version or whose factory
  // fails is an ERROR record and counted in vllm_metrics_logger_errors_total
  // under its path; the engine goes on without it.
  std::vector<std::string> plugins = {};

  // The same for those that VLLM_METRICS_PLUGINS names, after `plugins`.
  bool plugins_of_environment = true;

  // --- The page ----------------------------------------------------------

  // Where the series go. Null: the manager makes one.
  std::shared_ptr<Registry> registry = {};

  // Which families there are: {0, 27} to {0, 32}. Of {0, 31} and {0, 32} only
  // what is known to be new is here, see docs/metrics.md.
  WireVersion wire_version = {0, 30};

  // The running release, e.g. "0.30.1", for the rule of hidden families. Empty:
  // the first of `wire_version`.
  std::string vllm_version = {};

  // Show the families that were deprecated in this release, e.g. "0.29", and
  // are hidden in the next, the running one. None: hidden ones stay hidden.
  std::optional<std::string> show_hidden_metrics_for_version = {};

  // Bounds instead of vLLM's, by family; e.g. finer ones for a fast model.
  std::vector<BucketOverride> buckets = {};

  // The same for all latencies of requests and tokens that `buckets` does not
  // name. None: vLLM's bounds.
  std::vector<double> latency_buckets = {};

  // Native histograms too, by family: exponential buckets, so fine that a
  // quantile is right to some per cent wherever the latencies lie. They are on
  // protobuf pages only. Each takes twice 8 * (4 + max_buckets) bytes an
  // engine, 2.6 kB by default.
  std::vector<NativeOverride> native_histograms = {};

  // The same for all latencies of requests and tokens that `native_histograms`
  // does not name. None: no native buckets.
  std::optional<NativeHistogramOptions> native_latency_histograms = {};

  // Keep, of each bucket of the latencies of requests, the newest request with
  // a sampled trace (RequestStateStats::trace) and show it as the exemplar of
  // that bucket, on OpenMetrics and protobuf pages and in OTLP. Those latencies
  // are TTFT, end to end, queue, prefill, inference, decode and TPOT; each is
  // known, and kept, when the request ends. Takes about 12 kB an engine.
  bool exemplars = false;

  // How many label sets of vllm:lora_requests_info an engine shows, the newest
  // first; 1 or more. vLLM shows all there ever were.
  int lora_label_sets = 1;

  // List an adapter as running or waiting only if a request of it is. False:
  // both lists have every adapter with a live request, as in vLLM.
  bool lora_strict = false;

  // Show the library's own families, `vllm_metrics_*`.
  bool self_metrics = true;

  // Families of the engine's own that are recorded with the step.
  StepMetrics step_metrics = {};

  // --- Surroundings ------------------------------------------------------

  // Null: the machine's clocks.
  std::shared_ptr<const Clock> clock = {};

  // Null: standard error, INFO and above.
  std::shared_ptr<LogSink> log_sink = {};
};

}  // namespace vllm_metrics::inline v0
