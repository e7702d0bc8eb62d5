#include "src/tools/docgen/otlp_reference.h"

#include <fmt/format.h>

#include <iterator>
#include <string_view>

#include "src/tools/docgen/reference.h"
#include "vllm_metrics/catalogue/catalogue.h"
#include "vllm_metrics/catalogue/otlp_names.h"

namespace vllm_metrics::docgen {
namespace {

constexpr std::string_view kHead = R"(# Metrics in OpenTelemetry

Written from the catalogue by `vllm-metrics-docgen --otlp`; do not edit. What
[metrics.md](metrics.md) explains, as [`vllm_metrics::otlp`](opentelemetry.md) exports it.
Labels are attributes of the same name. A histogram is exponential where all its series
have native buckets.

| in OTLP | data | unit |
|---|---|---|
)";

constexpr std::string_view kGenAiHead = R"(
## The conventions' names

With `otlp::Options::gen_ai` also these, each a histogram with explicit bounds. Those
below are what the conventions advise; they are used where the histogram that it is made
of has all of them among its own, else its own are.

| in OTLP | unit | `gen_ai.token.type` | made of | advised bounds |
|---|---|---|---|---|
)";

std::string_view data_of(const MetricSpec& spec) {
  switch (spec.kind) {
    case MetricKind::kCounter:
      return spec.number == CounterNumber::kInteger ? "Sum, integers"
                                                    : "Sum, doubles";
    case MetricKind::kGauge:
      return "Gauge";
    case MetricKind::kHistogram:
      return "Histogram";
  }
  return "";
}

}  // namespace

std::string otlp_page() {
  std::string page(kHead);
  const auto out = std::back_inserter(page);
  for (const MetricSpec& spec : catalogue())
    fmt::format_to(out, "| `{}` | {} | `{}` |\n", otlp_name(family_of(spec)),
                   data_of(spec), otlp_unit(spec.unit));
  page += kGenAiHead;
  for (const GenAiMetric& metric : gen_ai_metrics()) {
    for (const GenAiSource& source : metric.sources) {
      fmt::format_to(out, "| `{}` | `{}` | {} | `{}` | {} |\n", metric.name,
                     metric.unit, source.token_type, spec_of(source.id).name,
                     bounds_text(metric.buckets));
    }
  }
  return page;
}

}  // namespace vllm_metrics::docgen
