#pragma once

#include <string_view>
#include <vector>

#include "vllm_metrics/loggers/step_metrics.h"

namespace vllm_metrics::inline v0 {

// The catalogue's families of one KV connector, in its order; closed labels
// make one metric for each of their values, the second label's changing first.
std::vector<StepMetrics::Metric> families_of_connector(
    std::string_view connector);

}  // namespace vllm_metrics::inline v0
