#include "src/loggers/connector_families.h"

#include <string>

#include "vllm_metrics/catalogue/catalogue.h"

namespace vllm_metrics::inline v0 {

namespace {

// One entry for each value of a closed label; without one, a single none.
std::vector<Labels> values_of(const ExtraLabel& label) {
  std::vector<Labels> values;
  for (const std::string_view value : label.values)
    values.push_back({{std::string(label.name), std::string(value)}});
  if (values.empty()) values.emplace_back();
  return values;
}

}  // namespace

std::vector<StepMetrics::Metric> families_of_connector(
    std::string_view connector) {
  std::vector<StepMetrics::Metric> metrics;
  for (const MetricSpec& spec : catalogue()) {
    if (spec.condition != Condition::kKvConnector ||
        spec.connector != connector)
      continue;
    for (const Labels& first : values_of(spec.extra_label)) {
      for (const Labels& second : values_of(spec.second_label)) {
        StepMetrics::Metric& metric = metrics.emplace_back(StepMetrics::Metric{
            .family = family_of(spec),
            .labels = first,
            .buckets = {spec.buckets.begin(), spec.buckets.end()},
            .lifecycle = spec.lifecycle});
        metric.labels.insert(metric.labels.end(), second.begin(), second.end());
      }
    }
  }
  return metrics;
}

}  // namespace vllm_metrics::inline v0
