#pragma once

#include <span>

#include "src/tools/doctor/finding.h"

namespace vllm_metrics::doctor {

// What to change in each classic case and what answers, in the order in which
// to try it.
std::span<const Lever> levers_of(std::string_view id);

}  // namespace vllm_metrics::doctor
