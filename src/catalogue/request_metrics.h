#pragma once

#include "vllm_metrics/catalogue/metric_spec.h"

namespace vllm_metrics::inline v0 {

// What requests experience and look like: latencies, phases, lengths.
// A part of the catalogue.

inline constexpr double kRequestLatency[] = {
    0.3,  0.5,  0.8,  1.0,  1.5,   2.0,   2.5,   5.0,   10.0,   15.0,  20.0,
    30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0};
inline constexpr double kTokenLatency[] = {
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2,  0.3,  0.4, 0.5,
    0.75, 1.0,   2.5,  5.0,   7.5, 10.0, 20.0, 40.0, 80.0};
inline constexpr double kFirstTokenLatency[] = {
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,  0.25,  0.5,   0.75,
    1.0,   2.5,   5.0,  7.5,  10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0};
inline constexpr double kSequences[] = {1.0, 2.0, 5.0, 10.0, 20.0};
inline constexpr double kPreemptions[] = {1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0};

inline constexpr MetricSpec kRequestMetrics[] = {
    // --- Latency of a token ------------------------------------------------
    {.id = MetricId::kTimeToFirstToken,
     .name = "vllm:time_to_first_token_seconds",
     .kind = MetricKind::kHistogram,
     .unit = "seconds",
     .help = "Time from a request's arrival to its first output (TTFT), "
             "queueing included.",
     .buckets = kFirstTokenLatency},
    {.id = MetricId::kInterTokenLatency,
     .name = "vllm:inter_token_latency_seconds",
     .kind = MetricKind::kHistogram,
     .unit = "seconds",
     .help = "Time between two successive outputs of a request (ITL): one "
             "sample per output, undivided when it brings "
             "several tokens.",
     .buckets = kTokenLatency},
    {.id = MetricId::kRequestTimePerOutputToken,
     .name = "vllm:request_time_per_output_token_seconds",
     .kind = MetricKind::kHistogram,
     .unit = "seconds",
     .help = "Mean time per output token after the first (TPOT), one sample "
             "per ended request; 0 below two tokens.",
     .buckets = kTokenLatency},

    // --- Phases of a request, one sample each when it ends -----------------
    {.id = MetricId::kE2eRequestLatency,
     .name = "vllm:e2e_request_latency_seconds",
     .kind = MetricKind::kHistogram,
     .unit = "seconds",
     .help = "Time from a request's arrival to its end.",
     .buckets = kRequestLatency},
    {.id = MetricId::kRequestQueueTime,
     .name = "vllm:request_queue_time_seconds",
     .kind = MetricKind::kHistogram,
     .unit = "seconds",
     .help = "Time a request waited before it was first scheduled.",
     .buckets = kRequestLatency},
    {.id = MetricId::kRequestInferenceTime,
     .name = "vllm:request_inference_time_seconds",
     .kind = MetricKind::kHistogram,
     .unit = "seconds",
     .help = "Time from a request's first scheduling to its last output: "
             "prefill plus decode.",
     .buckets = kRequestLatency},
    {.id = MetricId::kRequestPrefillTime,
     .name = "vllm:request_prefill_time_seconds",
     .kind = MetricKind::kHistogram,
     .unit = "seconds",
     .help = "Time from a request's first scheduling to its first output.",
     .buckets = kRequestLatency},
    {.id = MetricId::kRequestDecodeTime,
     .name = "vllm:request_decode_time_seconds",
     .kind = MetricKind::kHistogram,
     .unit = "seconds",
     .help = "Time from a request's first output to its last.",
     .buckets = kRequestLatency},

    // --- Shape of a request, one sample each when it ends ------------------
    {.id = MetricId::kRequestPromptTokens,
     .name = "vllm:request_prompt_tokens",
     .kind = MetricKind::kHistogram,
     .unit = "tokens",
     .help = "Prompt length of a request."},
    {.id = MetricId::kRequestGenerationTokens,
     .name = "vllm:request_generation_tokens",
     .kind = MetricKind::kHistogram,
     .unit = "tokens",
     .help = "Tokens generated for a request."},
    {.id = MetricId::kRequestMaxNumGenerationTokens,
     .name = "vllm:request_max_num_generation_tokens",
     .kind = MetricKind::kHistogram,
     .unit = "tokens",
     .help = "Most tokens generated for one of the n sequences of a request, "
             "sampled when its last sequence ends."},
    {.id = MetricId::kRequestParamsN,
     .name = "vllm:request_params_n",
     .kind = MetricKind::kHistogram,
     .unit = "sequences",
     .help =
         "The parameter n of a request, sampled when its last sequence ends.",
     .buckets = kSequences},
    {.id = MetricId::kRequestParamsMaxTokens,
     .name = "vllm:request_params_max_tokens",
     .kind = MetricKind::kHistogram,
     .unit = "tokens",
     .help = "The parameter max_tokens of a request; no sample when it was not "
             "given."},
    {.id = MetricId::kRequestPrefillKvComputedTokens,
     .name = "vllm:request_prefill_kv_computed_tokens",
     .kind = MetricKind::kHistogram,
     .unit = "tokens",
     .help = "Prompt tokens of a request whose KV had to be computed, cached "
             "ones left out."},
    {.id = MetricId::kRequestNumPreemptions,
     .name = "vllm:request_num_preemptions",
     .kind = MetricKind::kHistogram,
     .unit = "preemptions",
     .help = "Times a request was preempted before it ended, 0 included.",
     .buckets = kPreemptions,
     .since = {0, 30}},
};

}  // namespace vllm_metrics::inline v0
