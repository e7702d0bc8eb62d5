#include "src/loggers/connector_families.h"

#include <string>

#include "vllm_metrics/catalogue/catalogue.h"

namespace vllm_metrics::inline v0 {

std::vector<StepMetrics::Metric> families_of_connector(
    std::string_view connector) {
  std::vector<StepMetrics::Metric> metrics;
  for (const MetricSpec& spec : catalogue()) {
    if (spec.condition != Condition::kKvConnector ||
        spec.connector != connector)
      continue;
    const StepMetrics::Metric metric{
        .family = family_of(spec),
        .buckets = {spec.buckets.begin(), spec.buckets.end()}};
    if (spec.extra_label.values.empty()) {
      metrics.push_back(metric);
      continue;
    }
    for (const std::string_view value : spec.extra_label.values) {
      metrics.push_back(metric);
      metrics.back().labels = {
          {std::string(spec.extra_label.name), std::string(value)}};
    }
  }
  return metrics;
}

}  // namespace vllm_metrics::inline v0
