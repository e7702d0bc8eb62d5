#pragma once

#include <string_view>
#include <vector>

#include "src/tools/doctor/finding.h"
#include "src/tools/doctor/reading.h"

namespace vllm_metrics::doctor {

// What is still well enough.
struct Objectives {
  double ttft_p95 = 0.5;  // seconds
  double itl_p99 = 0.1;   // seconds
  double tpot = 0.05;     // seconds, mean
};

enum class State {
  kIdle,     // no request
  kHealthy,  // requests, and nothing to find
  kFindings,
  kUnknown,  // requests, but the pages do not say enough of them
};

std::string_view name_of(State state);  // "idle", "healthy", ...

struct Diagnosis {
  State state = State::kUnknown;
  std::vector<Finding> findings = {};  // what to look at first comes first
  std::string_view why = {};           // it is unknown; otherwise empty
};

// The decision tree of docs/operations.md. A cause that another one explains is
// not a finding of its own.
Diagnosis diagnose(const Reading& reading, const Objectives& objectives = {});

}  // namespace vllm_metrics::doctor
