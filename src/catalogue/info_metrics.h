#pragma once

#include <string_view>

#include "vllm_metrics/catalogue/metric_spec.h"

namespace vllm_metrics::inline v0 {

// Facts as labels, and what the library says about itself.
// A part of the catalogue.

inline constexpr std::string_view kFaults[] = {
    "negative_increment", "not_finite",     "negative_observation",
    "unset_timestamp",    "wrong_metric",   "invalid_draft",
    "dropped_eviction",   "other_connector"};

inline constexpr MetricSpec kInfoMetrics[] = {
    // --- Facts -------------------------------------------------------------
    {.id = MetricId::kLoraRequestsInfo,
     .name = "vllm:lora_requests_info",
     .kind = MetricKind::kGauge,
     .unit = "seconds since 1970",
     .help = "LoRA adapters with live requests as labels; the value is the "
             "time of the latest step with this state.",
     .condition = Condition::kLora,
     .scope = Scope::kInfo,
     .note = "no engine and no model_name label"},
    {.id = MetricId::kCacheConfigInfo,
     .name = "vllm:cache_config_info",
     .kind = MetricKind::kGauge,
     .unit = "1",
     .help =
         "The engine's cache configuration as labels; the value is always 1.",
     .condition = Condition::kEngineInitialized,
     .scope = Scope::kInfo},

    // --- The library about itself ------------------------------------------
    {.id = MetricId::kRejectedSamples,
     .name = "vllm_metrics_rejected_samples",
     .kind = MetricKind::kCounter,
     .unit = "samples",
     .help = "Values the engine handed in that could not be taken as they "
             "were: negative_increment and not_finite were "
             "dropped, negative_observation counted as 0, unset_timestamp left "
             "a phase of an ended request unobserved, "
             "wrong_metric named a step metric that does not exist or is of "
             "another kind, invalid_draft counted a draft with the nearest "
             "numbers that can be, dropped_eviction lost a sampled KV block's "
             "end, other_connector left out a step of a KV connector that is "
             "not configured.",
     .condition = Condition::kSelfMetrics,
     .extra_label = {"reason", kFaults}},
    {.id = MetricId::kLoggerErrors,
     .name = "vllm_metrics_logger_errors",
     .kind = MetricKind::kCounter,
     .unit = "errors",
     .help = "Exceptions thrown by a stat logger and contained by the manager.",
     .condition = Condition::kSelfMetrics,
     .scope = Scope::kManager,
     .extra_label = {"logger", {}}},
    {.id = MetricId::kUndeclaredEngineRecords,
     .name = "vllm_metrics_undeclared_engine_records",
     .kind = MetricKind::kCounter,
     .unit = "steps",
     .help = "Steps recorded for an engine index that was not declared; they "
             "are on no other metric.",
     .condition = Condition::kSelfMetrics,
     .scope = Scope::kManager},
    {.id = MetricId::kSampledKvTransfers,
     .name = "vllm_metrics_sampled_kv_transfers",
     .kind = MetricKind::kCounter,
     .unit = "transfers",
     .help = "KV transfers beyond what a log interval keeps one by one; P90 of "
             "that interval comes from a sample.",
     .condition = Condition::kSelfMetrics,
     .scope = Scope::kManager},
    {.id = MetricId::kSharedProcesses,
     .name = "vllm_metrics_shared_processes",
     .kind = MetricKind::kGauge,
     .unit = "processes",
     .help = "Processes at work that share this page; those that ended are in "
             "its counters and histograms still.",
     .condition = Condition::kSelfMetrics,
     .scope = Scope::kFolder},
    {.id = MetricId::kTornBanks,
     .name = "vllm_metrics_torn_banks",
     .kind = MetricKind::kGauge,
     .unit = "banks",
     .help = "Engines of ended processes that died inside a step: of that step "
             "this page has a part.",
     .condition = Condition::kSelfMetrics,
     .scope = Scope::kFolder},
    {.id = MetricId::kUnreadableSegments,
     .name = "vllm_metrics_unreadable_segments",
     .kind = MetricKind::kGauge,
     .unit = "files",
     .help = "Files of processes that are damaged or of another version: what "
             "is in them is missing on this page.",
     .condition = Condition::kSelfMetrics,
     .scope = Scope::kFolder},
    {.id = MetricId::kUnmergedSeries,
     .name = "vllm_metrics_unmerged_series",
     .kind = MetricKind::kGauge,
     .unit = "series",
     .help = "Series left out because another process has their family as "
             "another kind or with other buckets.",
     .condition = Condition::kSelfMetrics,
     .scope = Scope::kFolder},
};

}  // namespace vllm_metrics::inline v0
