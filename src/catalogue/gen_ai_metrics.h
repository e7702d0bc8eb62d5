#pragma once

#include "vllm_metrics/catalogue/otlp_names.h"

namespace vllm_metrics::inline v0 {

// The metrics of OpenTelemetry's conventions, and which of ours they are.

inline constexpr GenAiSource kGenAiDuration[] = {
    {MetricId::kE2eRequestLatency}};
inline constexpr GenAiSource kGenAiFirstToken[] = {
    {MetricId::kTimeToFirstToken}};
inline constexpr GenAiSource kGenAiOutputToken[] = {
    {MetricId::kRequestTimePerOutputToken}};
inline constexpr GenAiSource kGenAiTokens[] = {
    {MetricId::kRequestPromptTokens, "input"},
    {MetricId::kRequestGenerationTokens, "output"}};

inline constexpr double kGenAiDurationBuckets[] = {
    0.01, 0.02, 0.04, 0.08,  0.16,  0.32,  0.64,
    1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92};
inline constexpr double kGenAiFirstTokenBuckets[] = {
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,
    0.25,  0.5,   0.75, 1.0,  2.5,  5.0,  7.5,  10.0};
inline constexpr double kGenAiOutputTokenBuckets[] = {
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5};
inline constexpr double kGenAiTokenBuckets[] = {
    1.0,     4.0,     16.0,     64.0,      256.0,     1024.0,     4096.0,
    16384.0, 65536.0, 262144.0, 1048576.0, 4194304.0, 16777216.0, 67108864.0};

inline constexpr GenAiMetric kGenAiMetrics[] = {
    {.name = "gen_ai.server.request.duration",
     .unit = "s",
     .help = "Time from a request's arrival to its end, however it ended.",
     .sources = kGenAiDuration,
     .buckets = kGenAiDurationBuckets},
    {.name = "gen_ai.server.time_to_first_token",
     .unit = "s",
     .help = "Time from a request's arrival to its first output.",
     .sources = kGenAiFirstToken,
     .buckets = kGenAiFirstTokenBuckets},
    {.name = "gen_ai.server.time_per_output_token",
     .unit = "s",
     .help = "Mean time per output token after the first, one sample per ended "
             "request; 0 below two tokens.",
     .sources = kGenAiOutputToken,
     .buckets = kGenAiOutputTokenBuckets},
    {.name = "gen_ai.client.token.usage",
     .unit = "{token}",
     .help = "Tokens of a request, of its prompt and generated.",
     .sources = kGenAiTokens,
     .buckets = kGenAiTokenBuckets},
};

}  // namespace vllm_metrics::inline v0
