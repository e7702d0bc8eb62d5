#include "src/tools/replay/snapshot_json.h"

#include <cmath>
#include <string>
#include <variant>

#include "vllm_metrics/exposition/metric_reader.h"
#include "vllm_metrics/exposition/number_text.h"

namespace vllm_metrics::replay {
namespace {

using Json = nlohmann::json;

std::string bound_text(double bound) {
  char text[kMaxNumberText];
  return {text, write_number(text, bound)};
}

Json number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

void add(const CounterValue& counter, Json& out) {
  out["kind"] = "counter";
  out["value"] = counter.whole;
}

void add(const GaugeValue& gauge, Json& out) {
  out["kind"] = "gauge";
  out["value"] = number(gauge.value);
}

void add(const HistogramValue& histogram, Json& out) {
  out["kind"] = "histogram";
  Json& buckets = out["buckets"] = Json::object();
  for (std::size_t i = 0; i < histogram.bounds.size(); ++i)
    buckets[bound_text(histogram.bounds[i])] = histogram.buckets[i];
  buckets["+Inf"] = histogram.count();
  out["count"] = histogram.count();
  out["sum"] = number(histogram.sum);
}

void add(const VectorValue& vector, Json& out) {
  out["kind"] = "vector";
  out["values"] = vector;
}

}  // namespace

Json snapshot_json(const Snapshot& snapshot) {
  const MetricReader reader(snapshot, "vllm:");
  Json list = Json::array();
  for (const MetricValue& metric : reader.all()) {
    Json& out = list.emplace_back(Json::object());
    out["name"] = metric.name;
    Json& labels = out["labels"] = Json::object();
    for (const Label& label : metric.labels) labels[label.name] = label.value;
    std::visit([&](const auto& value) { add(value, out); }, metric.value);
  }
  return list;
}

}  // namespace vllm_metrics::replay
