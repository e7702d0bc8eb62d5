#pragma once

#include <string_view>

#include "vllm_metrics/catalogue/metric_spec.h"
#include "vllm_metrics/stats/finish_reason.h"

namespace vllm_metrics::inline v0 {

// What an engine holds and does: gauges of its state, counters of its work.
// A part of the catalogue.

inline constexpr double kStepTokens[] = {1.0,    8.0,    16.0,   32.0,   64.0,
                                         128.0,  256.0,  512.0,  1024.0, 2048.0,
                                         4096.0, 8192.0, 16384.0};

inline constexpr std::string_view kWaitingReasons[] = {"capacity", "deferred"};
inline constexpr std::string_view kKvFetchStages[] = {
    "waiting_to_start", "in_progress", "completed_waiting"};
inline constexpr std::string_view kCacheSources[] = {
    "device", "host", "p2p", "disk", "external_unspecified"};
inline constexpr std::string_view kSleepOperations[] = {
    "sleep", "release_kv_cache_memory", "wake"};
inline constexpr std::string_view kWeightOperations[] = {
    "init", "start", "start_draft", "update", "finish"};
inline constexpr double kOperationTimes[] = {0.01, 0.1, 1,   10, 30,
                                             60,   120, 300, 600};
inline constexpr std::string_view kAdmissionLimits[] = {
    "max_num_queued_reqs", "max_num_queued_tokens"};
inline constexpr std::string_view kSleepStates[] = {
    "awake", "weights_offloaded", "discard_all"};
inline constexpr std::string_view kPromptSources[] = {
    "local_compute", "local_cache_hit", "external_kv_transfer"};

inline constexpr MetricSpec kEngineMetrics[] = {
    // --- What the scheduler holds ------------------------------------------
    {.id = MetricId::kNumRequestsRunning,
     .name = "vllm:num_requests_running",
     .kind = MetricKind::kGauge,
     .unit = "requests",
     .help = "Requests in the batch after the latest step."},
    {.id = MetricId::kNumRequestsWaiting,
     .name = "vllm:num_requests_waiting",
     .kind = MetricKind::kGauge,
     .unit = "requests",
     .help = "Requests in the queue after the latest step, whatever they wait "
             "for."},
    {.id = MetricId::kNumRequestsWaitingByReason,
     .name = "vllm:num_requests_waiting_by_reason",
     .kind = MetricKind::kGauge,
     .unit = "requests",
     .help = "Requests in the queue by cause: capacity (no batch slot, token "
             "budget or KV blocks), deferred (passed "
             "over for now).",
     .extra_label = {"reason", kWaitingReasons}},
    {.id = MetricId::kNumRequestsKvFetchByStage,
     .name = "vllm:num_requests_kv_fetch_by_stage",
     .kind = MetricKind::kGauge,
     .unit = "requests",
     .help = "Requests whose KV comes from elsewhere while they wait, by how "
             "far that is: waiting_to_start, in_progress or completed_waiting "
             "(it is there, and the request waits to run).",
     .extra_label = {"stage", kKvFetchStages},
     .since = {0, 32},
     .note = "after 0.30; which release brought it is not known"},
    {.id = MetricId::kEngineSleepState,
     .name = "vllm:engine_sleep_state",
     .kind = MetricKind::kGauge,
     .unit = "0 or 1",
     .help = "1 for the state the engine is in: awake, weights_offloaded "
             "(sleep level 1) or discard_all (level 2).",
     .extra_label = {"sleep_state", kSleepStates}},
    {.id = MetricId::kKvCacheUsagePerc,
     .name = "vllm:kv_cache_usage_perc",
     .kind = MetricKind::kGauge,
     .unit = "ratio",
     .help = "Share of the KV cache blocks in use after the latest step, from "
             "0 to 1.",
     .note = "a fraction although the name says perc"},
    {.id = MetricId::kCorruptedRequests,
     .name = "vllm:corrupted_requests",
     .kind = MetricKind::kCounter,
     .unit = "requests",
     .help = "Requests that ended after one of their outputs had NaN logits.",
     .condition = Condition::kNanCheck},

    // --- Caches ------------------------------------------------------------
    {.id = MetricId::kPrefixCacheQueries,
     .name = "vllm:prefix_cache_queries",
     .kind = MetricKind::kCounter,
     .unit = "tokens",
     .help = "Prompt tokens looked up in the engine's prefix cache, repeats "
             "after a preemption left out."},
    {.id = MetricId::kPrefixCacheHits,
     .name = "vllm:prefix_cache_hits",
     .kind = MetricKind::kCounter,
     .unit = "tokens",
     .help = "Prompt tokens found in the engine's prefix cache, repeats after "
             "a preemption left out."},
    {.id = MetricId::kExternalPrefixCacheQueries,
     .name = "vllm:external_prefix_cache_queries",
     .kind = MetricKind::kCounter,
     .unit = "tokens",
     .help = "Prompt tokens looked up outside the engine through its KV "
             "connector."},
    {.id = MetricId::kExternalPrefixCacheHits,
     .name = "vllm:external_prefix_cache_hits",
     .kind = MetricKind::kCounter,
     .unit = "tokens",
     .help = "Prompt tokens that the KV connector found outside the engine."},
    {.id = MetricId::kMmCacheQueries,
     .name = "vllm:mm_cache_queries",
     .kind = MetricKind::kCounter,
     .unit = "items",
     .help = "Multi-modal inputs (images, audio, ...) looked up in the input "
             "cache."},
    {.id = MetricId::kMmCacheHits,
     .name = "vllm:mm_cache_hits",
     .kind = MetricKind::kCounter,
     .unit = "items",
     .help = "Multi-modal inputs found in the input cache."},

    // --- Work done ---------------------------------------------------------
    {.id = MetricId::kNumPreemptions,
     .name = "vllm:num_preemptions",
     .kind = MetricKind::kCounter,
     .unit = "preemptions",
     .help = "Times a running request lost its KV blocks and went back to the "
             "queue."},
    {.id = MetricId::kPromptTokens,
     .name = "vllm:prompt_tokens",
     .kind = MetricKind::kCounter,
     .unit = "tokens",
     .help = "Prompt tokens of requests that got their first output, cached "
             "ones included."},
    {.id = MetricId::kPromptTokensBySource,
     .name = "vllm:prompt_tokens_by_source",
     .kind = MetricKind::kCounter,
     .unit = "tokens",
     .help = "The same prompt tokens by where they came from; the sources add "
             "up to vllm:prompt_tokens_total.",
     .extra_label = {"source", kPromptSources}},
    {.id = MetricId::kPromptTokensCached,
     .name = "vllm:prompt_tokens_cached",
     .kind = MetricKind::kCounter,
     .unit = "tokens",
     .help = "Prompt tokens that did not have to be computed: local cache hits "
             "plus external transfers."},
    {.id = MetricId::kPromptTokensCachedBySource,
     .name = "vllm:prompt_tokens_cached_by_source",
     .kind = MetricKind::kCounter,
     .unit = "tokens",
     .help = "Prompt tokens that did not have to be computed, by where their "
             "KV was: device (the prefix cache), host, p2p (another engine), "
             "disk, or external_unspecified.",
     .extra_label = {"source", kCacheSources},
     .since = {0, 32},
     .note = "counted with the first output, as prompt_tokens_cached is, so "
             "that the sources add up to it; vLLM counts at admission"},
    {.id = MetricId::kGenerationTokens,
     .name = "vllm:generation_tokens",
     .kind = MetricKind::kCounter,
     .unit = "tokens",
     .help = "Tokens generated, counted in the step that returned them."},
    {.id = MetricId::kRequestSuccess,
     .name = "vllm:request_success",
     .kind = MetricKind::kCounter,
     .unit = "requests",
     .help = "Requests that have ended, by the reason of their end.",
     .extra_label = {"finished_reason", kFinishReasonNames},
     .note = "counts every end, aborts and errors too, although the name says "
             "success"},
    {.id = MetricId::kAdmissionRejections,
     .name = "vllm:admission_rejections",
     .kind = MetricKind::kCounter,
     .unit = "attempts",
     .help = "Attempts to admit a request that a cap of the queue refused, one "
             "each whatever the request's n.",
     .scope = Scope::kManager,
     .extra_label = {"reason", kAdmissionLimits},
     .since = {0, 32},
     .note = "no engine label, since no engine saw the request"},
    {.id = MetricId::kSleepModeOperationDuration,
     .name = "vllm:sleep_mode_operation_duration_seconds",
     .kind = MetricKind::kHistogram,
     .unit = "seconds",
     .help = "Time of one call that puts the engines to sleep, gives up their "
             "KV cache or wakes them, whether it succeeded or not.",
     .scope = Scope::kFrontEnd,
     .extra_label = {"operation", kSleepOperations},
     .buckets = kOperationTimes,
     .since = {0, 32},
     .note = "after 0.30; which release brought it is not known"},
    {.id = MetricId::kRlWeightUpdateOperationDuration,
     .name = "vllm:rl_weight_update_operation_duration_seconds",
     .kind = MetricKind::kHistogram,
     .unit = "seconds",
     .help = "Time of one call of an update of the weights by a trainer, "
             "whether it succeeded or not.",
     .scope = Scope::kFrontEnd,
     .extra_label = {"operation", kWeightOperations},
     .buckets = kOperationTimes,
     .since = {0, 32},
     .note = "after 0.30; which release brought it is not known"},
    {.id = MetricId::kEstimatedFlopsPerGpu,
     .name = "vllm:estimated_flops_per_gpu",
     .kind = MetricKind::kCounter,
     .number = CounterNumber::kReal,
     .unit = "operations",
     .help = "Estimated floating-point operations per GPU; stays 0 unless the "
             "engine estimates its work."},
    {.id = MetricId::kEstimatedReadBytesPerGpu,
     .name = "vllm:estimated_read_bytes_per_gpu",
     .kind = MetricKind::kCounter,
     .number = CounterNumber::kReal,
     .unit = "bytes",
     .help = "Estimated bytes read from device memory per GPU; stays 0 unless "
             "the engine estimates its work."},
    {.id = MetricId::kEstimatedWriteBytesPerGpu,
     .name = "vllm:estimated_write_bytes_per_gpu",
     .kind = MetricKind::kCounter,
     .number = CounterNumber::kReal,
     .unit = "bytes",
     .help = "Estimated bytes written to device memory per GPU; stays 0 unless "
             "the engine estimates its work."},
    {.id = MetricId::kIterationTokens,
     .name = "vllm:iteration_tokens_total",
     .kind = MetricKind::kHistogram,
     .unit = "tokens",
     .help = "Tokens of one step: computed prompt tokens plus generated "
             "tokens, one sample for each step with outputs.",
     .buckets = kStepTokens,
     .note = "a histogram although the name ends in _total"},
};

}  // namespace vllm_metrics::inline v0
