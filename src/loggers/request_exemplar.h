#pragma once

#include <optional>

#include "vllm_metrics/catalogue/catalogue.h"
#include "vllm_metrics/primitives/exemplar_format.h"
#include "vllm_metrics/stats/finished_request_stats.h"

namespace vllm_metrics::inline v0 {

// The ids of a request; value and time are still to come.
Exemplar exemplar_of(const FinishedRequestStats& finished);

// What a histogram of request latencies observed of it.
std::optional<double> latency_of(const FinishedRequestStats& finished,
                                 MetricId id);

}  // namespace vllm_metrics::inline v0
