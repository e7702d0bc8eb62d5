#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace vllm_metrics::docgen {

// docs/metrics.md: every family of the catalogue, grouped, and those that vLLM
// once had.
std::string reference_page();

// The same for programs: {"metrics": [...], "gone": [...]}.
nlohmann::ordered_json reference_json();

}  // namespace vllm_metrics::docgen
