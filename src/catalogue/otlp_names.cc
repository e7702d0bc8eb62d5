#include "vllm_metrics/catalogue/otlp_names.h"

#include <algorithm>

#include "src/catalogue/gen_ai_metrics.h"

namespace vllm_metrics::inline v0 {

std::string otlp_name(const Family& family) {
  return family.kind == MetricKind::kCounter ? family.name + "_total"
                                             : family.name;
}

std::string otlp_unit(std::string_view unit) {
  if (unit.empty() || unit == "1") return {};
  if (unit == "seconds") return "s";
  if (unit == "bytes") return "By";
  std::string annotation = "{" + std::string(unit) + "}";
  std::ranges::replace_if(
      annotation, [](char c) { return c <= ' ' || c > '~'; }, '_');
  return annotation;
}

std::span<const GenAiMetric> gen_ai_metrics() noexcept { return kGenAiMetrics; }

}  // namespace vllm_metrics::inline v0
