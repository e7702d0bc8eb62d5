#pragma once

#include <span>
#include <string>
#include <string_view>

#include "vllm_metrics/catalogue/metric_spec.h"
#include "vllm_metrics/export.h"

namespace vllm_metrics::inline v0 {

// What the metrics of a page are called in OpenTelemetry. The exporter and its
// reference read this.

// A family's name there is that of its sample: a counter's has `_total`.
VLLM_METRICS_EXPORT std::string otlp_name(const Family& family);

// The UCUM code of a unit, `s` or `By`; of what UCUM does not know, an
// annotation: `{tokens}`. Nothing for "1", since who makes names of Prometheus
// from it would put `_ratio` behind them.
VLLM_METRICS_EXPORT std::string otlp_unit(std::string_view unit);

// Where the points of a metric of the conventions come from: a histogram of the
// catalogue.
struct GenAiSource {
  MetricId id = {};
  std::string_view token_type = {};  // gen_ai.token.type; empty: not said
};

// A histogram that OpenTelemetry's conventions for generative AI define, made
// of one or more of the catalogue's.
// Definition: OpenTelemetry semantic conventions, "Generative AI metrics".
struct GenAiMetric {
  std::string_view name = {};
  std::string_view unit = {};  // UCUM
  std::string_view help = {};
  std::span<const GenAiSource> sources = {};
  // Advised by the conventions. Used where a source has all of them among its
  // own, so that nothing has to be guessed; else its own are.
  std::span<const double> buckets = {};
};

VLLM_METRICS_EXPORT std::span<const GenAiMetric> gen_ai_metrics() noexcept;

}  // namespace vllm_metrics::inline v0
