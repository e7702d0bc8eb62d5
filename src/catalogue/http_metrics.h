#pragma once

#include <string_view>

#include "vllm_metrics/catalogue/metric_spec.h"

namespace vllm_metrics::inline v0 {

// What an HTTP endpoint says about itself. A part of the catalogue.

inline constexpr std::string_view kHttpCodes[] = {"200", "400", "401",  "404",
                                                  "405", "503", "other"};

inline constexpr std::string_view kConnectionEnds[] = {
    "client", "no_request", "request_timeout", "keep_alive_timeout",
    "crowded_out"};

inline constexpr double kRenderSeconds[] = {0.0001, 0.00025, 0.0005, 0.001,
                                            0.0025, 0.005,   0.01,   0.025,
                                            0.05,   0.1,     0.25,   1.0};

inline constexpr MetricSpec kHttpMetrics[] = {
    {.id = MetricId::kHttpRequests,
     .name = "vllm_metrics_http_requests",
     .kind = MetricKind::kCounter,
     .unit = "requests",
     .help = "Whole requests that the endpoint answered, by status code.",
     .condition = Condition::kHttpEndpoint,
     .scope = Scope::kEndpoint,
     .extra_label = {"code", kHttpCodes},
     .note = "what is no HTTP or too large is no request, see "
             "`vllm_metrics_http_closed_connections`"},
    {.id = MetricId::kHttpResponseBytes,
     .name = "vllm_metrics_http_response_bytes",
     .kind = MetricKind::kCounter,
     .unit = "bytes",
     .help = "Bytes of the bodies of answers that were sent whole.",
     .condition = Condition::kHttpEndpoint,
     .scope = Scope::kEndpoint},
    {.id = MetricId::kHttpRenderSeconds,
     .name = "vllm_metrics_http_render_seconds",
     .kind = MetricKind::kHistogram,
     .unit = "seconds",
     .help = "Time to read all series and write them as a page, in seconds.",
     .condition = Condition::kHttpEndpoint,
     .scope = Scope::kEndpoint,
     .buckets = kRenderSeconds},
    {.id = MetricId::kHttpConnections,
     .name = "vllm_metrics_http_connections",
     .kind = MetricKind::kGauge,
     .unit = "connections",
     .help = "Connections that clients have to the endpoint.",
     .condition = Condition::kHttpEndpoint,
     .scope = Scope::kEndpoint},
    {.id = MetricId::kHttpClosedConnections,
     .name = "vllm_metrics_http_closed_connections",
     .kind = MetricKind::kCounter,
     .unit = "connections",
     .help = "Connections that ended: client after at least one answer, "
             "no_request before a whole request came (no HTTP, too large, no "
             "TLS, or given up), the others cut off by the endpoint for a "
             "request or an answer that took too long, for idling, or for want "
             "of room.",
     .condition = Condition::kHttpEndpoint,
     .scope = Scope::kEndpoint,
     .extra_label = {"reason", kConnectionEnds}},
    {.id = MetricId::kHttpAcceptErrors,
     .name = "vllm_metrics_http_accept_errors",
     .kind = MetricKind::kCounter,
     .unit = "attempts",
     .help = "Attempts to let a client in that failed, mostly for want of file "
             "descriptors or memory; ten a second while that lasts.",
     .condition = Condition::kHttpEndpoint,
     .scope = Scope::kEndpoint},
};

}  // namespace vllm_metrics::inline v0
