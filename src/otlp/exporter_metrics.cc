#include "src/otlp/exporter_metrics.h"

#include <string>
#include <string_view>

#include "vllm_metrics/catalogue/catalogue.h"

namespace vllm_metrics::inline v0::otlp {
namespace {

// A counter for each value of the extra label, which are in the order of the
// enum that indexes them.
absl::Status add_counters(Registry& registry, MetricId id, Signal signal,
                          std::vector<Handle<Counter>>& out) {
  const MetricSpec& spec = spec_of(id);
  for (const std::string_view value : spec.extra_label.values) {
    auto counter = registry.add_counter(
        family_of(spec),
        {{"signal", signal == Signal::kMetrics ? "metrics" : "traces"},
         {std::string(spec.extra_label.name), std::string(value)}});
    if (!counter.ok()) return counter.status();
    out.push_back(*std::move(counter));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ExporterMetrics>> ExporterMetrics::create(
    Registry& registry, Signal signal) {
  Counters exports;
  Counters losses;
  auto status = add_counters(registry, MetricId::kOtlpExports, signal, exports);
  if (status.ok())
    status = add_counters(registry, MetricId::kOtlpLostItems, signal, losses);
  if (!status.ok()) return status;
  return std::unique_ptr<ExporterMetrics>(
      new ExporterMetrics(std::move(exports), std::move(losses)));
}

}  // namespace vllm_metrics::inline v0::otlp
