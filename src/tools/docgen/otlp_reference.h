#pragma once

#include <string>

namespace vllm_metrics::docgen {

// docs/opentelemetry_metrics.md: what each family of the catalogue is called
// in OpenTelemetry, and what the metrics of its conventions are made of.
std::string otlp_page();

}  // namespace vllm_metrics::docgen
