#pragma once

#include <cstdint>
#include <span>

#include "src/loggers/bank_layout.h"
#include "vllm_metrics/loggers/step_metrics.h"
#include "vllm_metrics/primitives/bank.h"

namespace vllm_metrics::inline v0 {

// What a StepWriter writes to: the open section of a step.
struct StepWriter::State {
  Bank::Section& section;
  std::span<const BankLayout::Own> own;
  std::uint64_t wrong_metric = 0;     // calls whose index or kind did not fit
  std::uint64_t other_connector = 0;  // parts of a connector that is not there

  const BankLayout::Own* find(std::size_t metric, MetricKind kind) noexcept {
    if (metric < own.size() && own[metric].kind == kind) return &own[metric];
    ++wrong_metric;
    return nullptr;
  }
};

}  // namespace vllm_metrics::inline v0
