#pragma once

#include <nlohmann/json.hpp>

#include "src/tools/doctor/diagnosis.h"
#include "src/tools/doctor/reading.h"

namespace vllm_metrics::doctor {

// One model for programs: its state, its figures (seconds, tokens, shares from
// 0 to 1; null where the pages do not have them) and the findings.
nlohmann::ordered_json report_json(const Reading& reading,
                                   const Diagnosis& diagnosis);

}  // namespace vllm_metrics::doctor
