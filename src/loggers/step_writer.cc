#include "src/loggers/step_writer.h"

#include <cmath>

namespace vllm_metrics::inline v0 {

void StepWriter::inc_integer(std::size_t metric, std::int64_t n) noexcept {
  const BankLayout::Own* own = state_.find(metric, MetricKind::kCounter);
  if (own == nullptr) return;
  if (own->number == CounterNumber::kReal) {
    state_.section.inc(own->cells.first, static_cast<double>(n));
  } else {
    state_.section.inc(own->cells.first, n);
  }
}

void StepWriter::inc(std::size_t metric, double v) noexcept {
  const BankLayout::Own* own = state_.find(metric, MetricKind::kCounter);
  if (own == nullptr) return;
  if (own->number == CounterNumber::kReal) {
    state_.section.inc(own->cells.first, v);
  } else {
    ++state_.wrong_metric;  // a fraction has no place in a counter of events
  }
}

void StepWriter::set(std::size_t metric, double v) noexcept {
  const BankLayout::Own* own = state_.find(metric, MetricKind::kGauge);
  if (own != nullptr) state_.section.set({own->cells.first}, v);
}

void StepWriter::observe(std::size_t metric,
                         std::span<const double> values) noexcept {
  const BankLayout::Own* own = state_.find(metric, MetricKind::kHistogram);
  if (own != nullptr) state_.section.observe(own->cells, values);
}

}  // namespace vllm_metrics::inline v0
