#pragma once

#include "ratio_table.h"

namespace vllm_metrics::bench {

// What the page of vllm-metrics-sim costs the engine that it shows: the median
// step with the page closed, and while a client asks for what the open page
// asks for, in the same proportions but without pause. The page itself makes
// 4.5 requests a second.
void measure_sandbox(Ratios& ratios);

}  // namespace vllm_metrics::bench
