#pragma once

#include <string>

#include "src/tools/doctor/diagnosis.h"
#include "src/tools/doctor/reading.h"

namespace vllm_metrics::doctor {

struct TextStyle {
  int width = 80;      // columns, at least 60 are used
  bool color = false;  // ANSI, for a terminal
};

// The figures of one model and what was found, for a person; ends in a newline.
std::string report_text(const Reading& reading, const Diagnosis& diagnosis,
                        const TextStyle& style);

}  // namespace vllm_metrics::doctor
