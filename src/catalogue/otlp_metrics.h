#pragma once

#include <string_view>

#include "vllm_metrics/catalogue/metric_spec.h"

namespace vllm_metrics::inline v0 {

// What the OpenTelemetry exporters say about themselves. A part of the
// catalogue.

inline constexpr std::string_view kOtlpOutcomes[] = {"accepted", "refused",
                                                     "unknown"};

inline constexpr std::string_view kOtlpLosses[] = {"rejected", "not_delivered",
                                                   "queue_full"};

inline constexpr MetricSpec kOtlpMetrics[] = {
    {.id = MetricId::kOtlpExports,
     .name = "vllm_metrics_otlp_exports",
     .kind = MetricKind::kCounter,
     .unit = "exports",
     .help = "Exports, their retries with them, by how they ended: accepted by "
             "the collector, refused or never sent, or unknown, since no whole "
             "answer came and it may have taken the request.",
     .condition = Condition::kOtlpExporter,
     .scope = Scope::kExporter,
     .extra_label = {"outcome", kOtlpOutcomes}},
    {.id = MetricId::kOtlpLostItems,
     .name = "vllm_metrics_otlp_lost_items",
     .kind = MetricKind::kCounter,
     .unit = "items",
     .help = "Data points or spans that will not be sent again: rejected by a "
             "collector that took the rest of the request, not_delivered when "
             "an export of spans, or of deltas that may have arrived, was "
             "given up or the exporter of spans shut down, queue_full when "
             "spans ended faster than they could be sent.",
     .condition = Condition::kOtlpExporter,
     .scope = Scope::kExporter,
     .extra_label = {"reason", kOtlpLosses}},
};

}  // namespace vllm_metrics::inline v0
