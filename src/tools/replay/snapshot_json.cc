#include "src/tools/replay/snapshot_json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "vllm_metrics/exposition/number_text.h"

namespace vllm_metrics::replay {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kPosition = "position";

struct Metric {
  std::string name;
  Labels labels;
  Json value;  // the object, with its labels
};

std::string bound_text(double bound) {
  char text[kMaxNumberText];
  return {text, write_number(text, bound)};
}

Json number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

std::uint64_t count(const Snapshot& snapshot, const Family& family,
                    const Series& series) {
  if (family.number == CounterNumber::kInteger) return snapshot.integer(series);
  // 2^64 and above have no whole number to be cut off to.
  const double value =
      std::clamp(snapshot.real(series), 0.0, 0x1.fffffffffffffp63);
  return static_cast<std::uint64_t>(value);
}

Metric metric(const Family& family, std::string_view kind, Labels labels) {
  Metric out{family.name, std::move(labels), Json::object()};
  out.value["name"] = family.name;
  out.value["kind"] = kind;
  Json& shown = out.value["labels"] = Json::object();
  for (const Label& label : out.labels) shown[label.name] = label.value;
  return out;
}

void add_histogram(const Snapshot& snapshot, const Family& family,
                   const Series& series, std::vector<Metric>& out) {
  Metric& added = out.emplace_back(metric(family, "histogram", series.labels));
  Json& buckets = added.value["buckets"] = Json::object();
  std::uint64_t total = 0;
  std::size_t index = 0;
  const std::span<const double> bounds = series.bounds->values();
  for (const std::uint64_t bucket : snapshot.buckets(series)) {
    total += bucket;
    const bool last = index == bounds.size();
    buckets[last ? "+Inf" : bound_text(bounds[index])] = total;
    ++index;
  }
  added.value["count"] = total;
  added.value["sum"] = number(snapshot.sum(series));
}

std::size_t position_of(const Series& series) {
  std::size_t position = 0;
  for (const Label& label : series.labels) {
    if (label.name != kPosition) continue;
    const char* begin = label.value.data();
    std::from_chars(begin, begin + label.value.size(), position);
  }
  return position;
}

// One vector for each label set that remains without `position`, all as long
// as the longest.
void add_vectors(const Snapshot& snapshot, const SchemaFamily& positions,
                 std::vector<Metric>& out) {
  std::size_t length = 0;
  for (const Series& series : positions.series) {
    length = std::max(length, position_of(series) + 1);
  }
  const std::size_t first = out.size();
  for (const Series& series : positions.series) {
    Labels rest = series.labels;
    std::erase_if(rest, [](const Label& l) { return l.name == kPosition; });
    auto found = std::find_if(
        out.begin() + static_cast<std::ptrdiff_t>(first), out.end(),
        [&rest](const Metric& vector) { return vector.labels == rest; });
    if (found == out.end()) {
      out.push_back(metric(positions.family, "vector", std::move(rest)));
      found = out.end() - 1;
      found->value["values"] = std::vector<std::uint64_t>(length);
    }
    found->value["values"][position_of(series)] =
        count(snapshot, positions.family, series);
  }
}

void add_family(const Snapshot& snapshot, const SchemaFamily& schema,
                std::vector<Metric>& out) {
  const Family& family = schema.family;
  if (family.kind == MetricKind::kCounter &&
      family.name.ends_with("_per_pos")) {
    return add_vectors(snapshot, schema, out);
  }
  for (const Series& series : schema.series) {
    switch (family.kind) {
      case MetricKind::kGauge:
        out.push_back(metric(family, "gauge", series.labels));
        out.back().value["value"] = number(snapshot.real(series));
        break;
      case MetricKind::kCounter:
        out.push_back(metric(family, "counter", series.labels));
        out.back().value["value"] = count(snapshot, family, series);
        break;
      case MetricKind::kHistogram:
        add_histogram(snapshot, family, series, out);
        break;
    }
  }
}

// Labels as pairs, for their order.
bool before(const Metric& a, const Metric& b) {
  if (a.name != b.name) return a.name < b.name;
  return std::lexicographical_compare(
      a.labels.begin(), a.labels.end(), b.labels.begin(), b.labels.end(),
      [](const Label& x, const Label& y) {
        return std::tie(x.name, x.value) < std::tie(y.name, y.value);
      });
}

}  // namespace

Json snapshot_json(const Snapshot& snapshot) {
  std::vector<Metric> metrics;
  for (const SchemaFamily& schema : snapshot.schema->families) {
    if (schema.family.name.starts_with("vllm:")) {
      add_family(snapshot, schema, metrics);
    }
  }
  std::stable_sort(metrics.begin(), metrics.end(), before);
  Json list = Json::array();
  for (Metric& metric : metrics) list.push_back(std::move(metric.value));
  return list;
}

}  // namespace vllm_metrics::replay
