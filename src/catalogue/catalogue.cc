#include "vllm_metrics/catalogue/catalogue.h"

#include <array>

#include "vllm_metrics/stats/finish_reason.h"

namespace vllm_metrics::inline v0 {
namespace {

using enum MetricKind;

constexpr double kRequestLatency[] = {
    0.3,  0.5,  0.8,  1.0,  1.5,   2.0,   2.5,   5.0,   10.0,   15.0,  20.0,
    30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0};
constexpr double kTokenLatency[] = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2,
                                    0.3,  0.4,   0.5,  0.75,  1.0, 2.5,  5.0,
                                    7.5,  10.0,  20.0, 40.0,  80.0};
constexpr double kFirstTokenLatency[] = {
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,  0.25,  0.5,   0.75,
    1.0,   2.5,   5.0,  7.5,  10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0};
constexpr double kStepTokens[] = {1.0,    8.0,    16.0,   32.0,   64.0,
                                  128.0,  256.0,  512.0,  1024.0, 2048.0,
                                  4096.0, 8192.0, 16384.0};
constexpr double kSequences[] = {1.0, 2.0, 5.0, 10.0, 20.0};
constexpr double kPreemptions[] = {1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0};

constexpr double kBlockResidency[] = {
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05,  0.1,   0.2,   0.5,    1.0,   2.0,
    5.0,   10.0,  20.0,  30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0};

constexpr std::string_view kWaitingReasons[] = {"capacity", "deferred"};
constexpr std::string_view kSleepStates[] = {"awake", "weights_offloaded",
                                             "discard_all"};
constexpr std::string_view kPromptSources[] = {
    "local_compute", "local_cache_hit", "external_kv_transfer"};
constexpr std::string_view kFaults[] = {"negative_increment", "not_finite",
                                        "negative_observation",
                                        "unset_timestamp", "wrong_metric"};

constexpr MetricSpec kCatalogue[] = {
    // --- What the scheduler holds ------------------------------------------
    {.id = MetricId::kNumRequestsRunning,
     .name = "vllm:num_requests_running",
     .kind = kGauge,
     .unit = "requests",
     .help = "Requests in the batch after the latest step."},
    {.id = MetricId::kNumRequestsWaiting,
     .name = "vllm:num_requests_waiting",
     .kind = kGauge,
     .unit = "requests",
     .help = "Requests in the queue after the latest step, whatever they wait "
             "for."},
    {.id = MetricId::kNumRequestsWaitingByReason,
     .name = "vllm:num_requests_waiting_by_reason",
     .kind = kGauge,
     .unit = "requests",
     .help = "Requests in the queue by cause: capacity (no batch slot, token "
             "budget or KV blocks), deferred (passed "
             "over for now).",
     .extra_label = {"reason", kWaitingReasons}},
    {.id = MetricId::kEngineSleepState,
     .name = "vllm:engine_sleep_state",
     .kind = kGauge,
     .unit = "0 or 1",
     .help = "1 for the state the engine is in: awake, weights_offloaded "
             "(sleep level 1) or discard_all (level 2).",
     .extra_label = {"sleep_state", kSleepStates}},
    {.id = MetricId::kKvCacheUsagePerc,
     .name = "vllm:kv_cache_usage_perc",
     .kind = kGauge,
     .unit = "ratio",
     .help = "Share of the KV cache blocks in use after the latest step, from "
             "0 to 1.",
     .note = "a fraction although the name says perc"},
    {.id = MetricId::kCorruptedRequests,
     .name = "vllm:corrupted_requests",
     .kind = kCounter,
     .unit = "requests",
     .help = "Requests that ended after one of their outputs had NaN logits.",
     .condition = Condition::kNanCheck},

    // --- Caches ------------------------------------------------------------
    {.id = MetricId::kPrefixCacheQueries,
     .name = "vllm:prefix_cache_queries",
     .kind = kCounter,
     .unit = "tokens",
     .help = "Prompt tokens looked up in the engine's prefix cache, repeats "
             "after a preemption left out."},
    {.id = MetricId::kPrefixCacheHits,
     .name = "vllm:prefix_cache_hits",
     .kind = kCounter,
     .unit = "tokens",
     .help = "Prompt tokens found in the engine's prefix cache, repeats after "
             "a preemption left out."},
    {.id = MetricId::kExternalPrefixCacheQueries,
     .name = "vllm:external_prefix_cache_queries",
     .kind = kCounter,
     .unit = "tokens",
     .help = "Prompt tokens looked up outside the engine through its KV "
             "connector."},
    {.id = MetricId::kExternalPrefixCacheHits,
     .name = "vllm:external_prefix_cache_hits",
     .kind = kCounter,
     .unit = "tokens",
     .help = "Prompt tokens that the KV connector found outside the engine."},
    {.id = MetricId::kMmCacheQueries,
     .name = "vllm:mm_cache_queries",
     .kind = kCounter,
     .unit = "items",
     .help = "Multi-modal inputs (images, audio, ...) looked up in the input "
             "cache."},
    {.id = MetricId::kMmCacheHits,
     .name = "vllm:mm_cache_hits",
     .kind = kCounter,
     .unit = "items",
     .help = "Multi-modal inputs found in the input cache."},

    // --- Work done ---------------------------------------------------------
    {.id = MetricId::kNumPreemptions,
     .name = "vllm:num_preemptions",
     .kind = kCounter,
     .unit = "preemptions",
     .help = "Times a running request lost its KV blocks and went back to the "
             "queue."},
    {.id = MetricId::kPromptTokens,
     .name = "vllm:prompt_tokens",
     .kind = kCounter,
     .unit = "tokens",
     .help = "Prompt tokens of requests that got their first output, cached "
             "ones included."},
    {.id = MetricId::kPromptTokensBySource,
     .name = "vllm:prompt_tokens_by_source",
     .kind = kCounter,
     .unit = "tokens",
     .help = "The same prompt tokens by where they came from; the sources add "
             "up to vllm:prompt_tokens_total.",
     .extra_label = {"source", kPromptSources}},
    {.id = MetricId::kPromptTokensCached,
     .name = "vllm:prompt_tokens_cached",
     .kind = kCounter,
     .unit = "tokens",
     .help = "Prompt tokens that did not have to be computed: local cache hits "
             "plus external transfers."},
    {.id = MetricId::kGenerationTokens,
     .name = "vllm:generation_tokens",
     .kind = kCounter,
     .unit = "tokens",
     .help = "Tokens generated, counted in the step that returned them."},
    {.id = MetricId::kRequestSuccess,
     .name = "vllm:request_success",
     .kind = kCounter,
     .unit = "requests",
     .help = "Requests that have ended, by the reason of their end.",
     .extra_label = {"finished_reason", kFinishReasonNames},
     .note = "counts every end, aborts and errors too, although the name says "
             "success"},
    {.id = MetricId::kEstimatedFlopsPerGpu,
     .name = "vllm:estimated_flops_per_gpu",
     .kind = kCounter,
     .number = CounterNumber::kReal,
     .unit = "operations",
     .help = "Estimated floating-point operations per GPU; stays 0 unless the "
             "engine estimates its work."},
    {.id = MetricId::kEstimatedReadBytesPerGpu,
     .name = "vllm:estimated_read_bytes_per_gpu",
     .kind = kCounter,
     .number = CounterNumber::kReal,
     .unit = "bytes",
     .help = "Estimated bytes read from device memory per GPU; stays 0 unless "
             "the engine estimates its work."},
    {.id = MetricId::kEstimatedWriteBytesPerGpu,
     .name = "vllm:estimated_write_bytes_per_gpu",
     .kind = kCounter,
     .number = CounterNumber::kReal,
     .unit = "bytes",
     .help = "Estimated bytes written to device memory per GPU; stays 0 unless "
             "the engine estimates its work."},
    {.id = MetricId::kIterationTokens,
     .name = "vllm:iteration_tokens_total",
     .kind = kHistogram,
     .unit = "tokens",
     .help = "Tokens of one step: computed prompt tokens plus generated "
             "tokens, one sample for each step with outputs.",
     .buckets = kStepTokens,
     .note = "a histogram although the name ends in _total"},

    // --- Latency of a token ------------------------------------------------
    {.id = MetricId::kTimeToFirstToken,
     .name = "vllm:time_to_first_token_seconds",
     .kind = kHistogram,
     .unit = "seconds",
     .help = "Time from a request's arrival to its first output (TTFT), "
             "queueing included.",
     .buckets = kFirstTokenLatency},
    {.id = MetricId::kInterTokenLatency,
     .name = "vllm:inter_token_latency_seconds",
     .kind = kHistogram,
     .unit = "seconds",
     .help = "Time between two successive outputs of a request (ITL): one "
             "sample per output, undivided when it brings "
             "several tokens.",
     .buckets = kTokenLatency},
    {.id = MetricId::kRequestTimePerOutputToken,
     .name = "vllm:request_time_per_output_token_seconds",
     .kind = kHistogram,
     .unit = "seconds",
     .help = "Mean time per output token after the first (TPOT), one sample "
             "per ended request; 0 below two tokens.",
     .buckets = kTokenLatency},

    // --- Phases of a request, one sample each when it ends -----------------
    {.id = MetricId::kE2eRequestLatency,
     .name = "vllm:e2e_request_latency_seconds",
     .kind = kHistogram,
     .unit = "seconds",
     .help = "Time from a request's arrival to its end.",
     .buckets = kRequestLatency},
    {.id = MetricId::kRequestQueueTime,
     .name = "vllm:request_queue_time_seconds",
     .kind = kHistogram,
     .unit = "seconds",
     .help = "Time a request waited before it was first scheduled.",
     .buckets = kRequestLatency},
    {.id = MetricId::kRequestInferenceTime,
     .name = "vllm:request_inference_time_seconds",
     .kind = kHistogram,
     .unit = "seconds",
     .help = "Time from a request's first scheduling to its last output: "
             "prefill plus decode.",
     .buckets = kRequestLatency},
    {.id = MetricId::kRequestPrefillTime,
     .name = "vllm:request_prefill_time_seconds",
     .kind = kHistogram,
     .unit = "seconds",
     .help = "Time from a request's first scheduling to its first output.",
     .buckets = kRequestLatency},
    {.id = MetricId::kRequestDecodeTime,
     .name = "vllm:request_decode_time_seconds",
     .kind = kHistogram,
     .unit = "seconds",
     .help = "Time from a request's first output to its last.",
     .buckets = kRequestLatency},

    // --- Shape of a request, one sample each when it ends ------------------
    {.id = MetricId::kRequestPromptTokens,
     .name = "vllm:request_prompt_tokens",
     .kind = kHistogram,
     .unit = "tokens",
     .help = "Prompt length of a request."},
    {.id = MetricId::kRequestGenerationTokens,
     .name = "vllm:request_generation_tokens",
     .kind = kHistogram,
     .unit = "tokens",
     .help = "Tokens generated for a request."},
    {.id = MetricId::kRequestMaxNumGenerationTokens,
     .name = "vllm:request_max_num_generation_tokens",
     .kind = kHistogram,
     .unit = "tokens",
     .help = "Most tokens generated for one of the n sequences of a request, "
             "sampled when its last sequence ends."},
    {.id = MetricId::kRequestParamsN,
     .name = "vllm:request_params_n",
     .kind = kHistogram,
     .unit = "sequences",
     .help =
         "The parameter n of a request, sampled when its last sequence ends.",
     .buckets = kSequences},
    {.id = MetricId::kRequestParamsMaxTokens,
     .name = "vllm:request_params_max_tokens",
     .kind = kHistogram,
     .unit = "tokens",
     .help = "The parameter max_tokens of a request; no sample when it was not "
             "given."},
    {.id = MetricId::kRequestPrefillKvComputedTokens,
     .name = "vllm:request_prefill_kv_computed_tokens",
     .kind = kHistogram,
     .unit = "tokens",
     .help = "Prompt tokens of a request whose KV had to be computed, cached "
             "ones left out."},
    {.id = MetricId::kRequestNumPreemptions,
     .name = "vllm:request_num_preemptions",
     .kind = kHistogram,
     .unit = "preemptions",
     .help = "Times a request was preempted before it ended, 0 included.",
     .buckets = kPreemptions,
     .since = {0, 30}},

    // --- Life of a sampled KV cache block, one sample each when it is evicted
    {.id = MetricId::kKvBlockLifetime,
     .name = "vllm:kv_block_lifetime_seconds",
     .kind = kHistogram,
     .unit = "seconds",
     .help = "Time from a KV block's allocation to its eviction, for a sample "
             "of the blocks.",
     .condition = Condition::kKvCacheMetrics,
     .buckets = kBlockResidency},
    {.id = MetricId::kKvBlockIdleBeforeEvict,
     .name = "vllm:kv_block_idle_before_evict_seconds",
     .kind = kHistogram,
     .unit = "seconds",
     .help = "Time from the last use of a KV block to its eviction, for a "
             "sample of the blocks.",
     .condition = Condition::kKvCacheMetrics,
     .buckets = kBlockResidency},
    {.id = MetricId::kKvBlockReuseGap,
     .name = "vllm:kv_block_reuse_gap_seconds",
     .kind = kHistogram,
     .unit = "seconds",
     .help = "Time between the last few uses of a KV block, for a sample of "
             "the blocks; up to three samples each.",
     .condition = Condition::kKvCacheMetrics,
     .buckets = kBlockResidency},

    // --- Facts -------------------------------------------------------------
    {.id = MetricId::kCacheConfigInfo,
     .name = "vllm:cache_config_info",
     .kind = kGauge,
     .unit = "1",
     .help =
         "The engine's cache configuration as labels; the value is always 1.",
     .condition = Condition::kEngineInitialized,
     .scope = Scope::kInfo},

    // --- The library about itself ------------------------------------------
    {.id = MetricId::kRejectedSamples,
     .name = "vllm_metrics_rejected_samples",
     .kind = kCounter,
     .unit = "samples",
     .help = "Values the engine handed in that could not be taken as they "
             "were: negative_increment and not_finite were "
             "dropped, negative_observation counted as 0, unset_timestamp left "
             "a phase of an ended request unobserved, "
             "wrong_metric named a step metric that does not exist or is of "
             "another kind.",
     .condition = Condition::kSelfMetrics,
     .extra_label = {"reason", kFaults}},
    {.id = MetricId::kLoggerErrors,
     .name = "vllm_metrics_logger_errors",
     .kind = kCounter,
     .unit = "errors",
     .help = "Exceptions thrown by a stat logger and contained by the manager.",
     .condition = Condition::kSelfMetrics,
     .scope = Scope::kManager,
     .extra_label = {"logger", {}}},
    {.id = MetricId::kUndeclaredEngineRecords,
     .name = "vllm_metrics_undeclared_engine_records",
     .kind = kCounter,
     .unit = "steps",
     .help = "Steps recorded for an engine index that was not declared; they "
             "are on no other metric.",
     .condition = Condition::kSelfMetrics,
     .scope = Scope::kManager},
};

constexpr bool in_order_of_id() {
  for (std::size_t i = 0; i < std::size(kCatalogue); ++i) {
    if (static_cast<std::size_t>(kCatalogue[i].id) != i) return false;
  }
  return std::size(kCatalogue) == kMetricCount;
}
static_assert(in_order_of_id(), "spec_of() indexes by MetricId");

}  // namespace

std::span<const MetricSpec> catalogue() noexcept { return kCatalogue; }

const MetricSpec& spec_of(MetricId id) noexcept {
  return kCatalogue[static_cast<std::size_t>(id)];
}

const MetricSpec* find_spec(std::string_view name) noexcept {
  for (const MetricSpec& spec : kCatalogue) {
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

std::vector<double> one_two_five_buckets(std::int64_t max) {
  std::vector<double> bounds;
  for (std::int64_t power = 1; power <= max; power *= 10) {
    for (const std::int64_t digit : {1, 2, 5}) {
      if (digit > max / power) return bounds;
      bounds.push_back(static_cast<double>(digit * power));
    }
    if (power > max / 10) break;
  }
  return bounds;
}

}  // namespace vllm_metrics::inline v0
