#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

namespace vllm_metrics::docgen {

// docs/metrics.md: every family of the catalogue, grouped, and those that vLLM
// once had.
std::string reference_page();

// Upper bounds, with commas between.
std::string bounds_text(std::span<const double> bounds);

// The same for programs: {"metrics": [...], "gone": [...]}.
nlohmann::ordered_json reference_json();

}  // namespace vllm_metrics::docgen
