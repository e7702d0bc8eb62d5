#include "vllm_metrics/exposition/metric_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <system_error>
#include <tuple>
#include <utility>

#include "vllm_metrics/exposition/page.h"

namespace vllm_metrics::inline v0 {
namespace {

constexpr std::string_view kTotal = "_total";
constexpr std::string_view kPerPosition = "_per_pos";
constexpr std::string_view kPosition = "position";
// A page may say anything; a vector is as long as its greatest position.
constexpr std::size_t kMaxPositions = 4096;

std::string_view without_total(std::string_view name) {
  if (name.ends_with(kTotal)) name.remove_suffix(kTotal.size());
  return name;
}

// Cut off; 2^64 and above have no whole number to be cut off to.
std::uint64_t whole(double value) {
  return static_cast<std::uint64_t>(
      std::clamp(std::isnan(value) ? 0.0 : value, 0.0, 0x1.fffffffffffffp63));
}

bool has_labels(const Labels& labels, const Labels& where) {
  return std::ranges::all_of(where, [&](const Label& label) {
    return std::ranges::find(labels, label) != labels.end();
  });
}

bool before(const MetricValue& a, const MetricValue& b) {
  const auto by_text = [](const Label& x, const Label& y) {
    return std::tie(x.name, x.value) < std::tie(y.name, y.value);
  };
  if (a.name != b.name) return a.name < b.name;
  return std::ranges::lexicographical_compare(a.labels, b.labels, by_text);
}

Labels labels_of(const PageSeries& series) {
  Labels labels;
  for (const PageLabel& label : series.labels)
    labels.push_back({std::string(label.name), std::string(label.value)});
  return labels;
}

HistogramValue histogram_of(const Snapshot& snapshot, const Series& series) {
  HistogramValue out;
  const std::span<const double> bounds = series.bounds->values();
  out.bounds.assign(bounds.begin(), bounds.end());
  std::uint64_t total = 0;
  for (const std::uint64_t bucket : snapshot.buckets(series))
    out.buckets.push_back(total += bucket);
  out.sum = snapshot.sum(series);
  return out;
}

// A faulty page's buckets may fall; PromQL, too, then takes the one before.
HistogramValue histogram_of(const PageSeries& series) {
  HistogramValue out;
  std::uint64_t most = 0;
  for (const PageBucket& bucket : series.buckets) {
    most = std::max(most, whole(bucket.count));
    if (std::isinf(bucket.bound)) continue;
    out.bounds.push_back(bucket.bound);
    out.buckets.push_back(most);
  }
  out.buckets.push_back(std::max(most, whole(series.count)));
  out.sum = series.sum.value_or(std::numeric_limits<double>::quiet_NaN());
  return out;
}

std::optional<std::size_t> position_of(const Labels& labels) {
  const auto label = std::ranges::find(labels, kPosition, &Label::name);
  if (label == labels.end()) return std::nullopt;
  const char* const end = label->value.data() + label->value.size();
  std::size_t position = 0;
  const auto read = std::from_chars(label->value.data(), end, position);
  if (read.ec != std::errc() || read.ptr != end || position >= kMaxPositions)
    return std::nullopt;
  return position;
}

// Makes the counters of one family, `values` from `first` on, to vectors.
void gather_positions(std::vector<MetricValue>& values, std::size_t first) {
  std::vector<MetricValue> counters(
      std::make_move_iterator(values.begin() +
                              static_cast<std::ptrdiff_t>(first)),
      std::make_move_iterator(values.end()));
  values.resize(first);
  std::size_t length = 0;
  for (MetricValue& counter : counters) {
    const auto position = position_of(counter.labels);
    if (!position) {
      values.push_back(std::move(counter));
      continue;
    }
    length = std::max(length, *position + 1);
    std::erase_if(counter.labels,
                  [](const Label& label) { return label.name == kPosition; });
    const auto is_its = [&](const MetricValue& vector) {
      return std::holds_alternative<VectorValue>(vector.value) &&
             vector.labels == counter.labels;
    };
    auto vector =
        std::find_if(values.begin() + static_cast<std::ptrdiff_t>(first),
                     values.end(), is_its);
    const std::uint64_t count = std::get<CounterValue>(counter.value).whole;
    if (vector == values.end()) {
      counter.value = VectorValue();
      values.push_back(std::move(counter));
      vector = values.end() - 1;
    }
    auto& at = std::get<VectorValue>(vector->value);
    at.resize(std::max(at.size(), *position + 1));
    at[*position] = count;
  }
  for (std::size_t i = first; i < values.size(); ++i) {
    if (auto* vector = std::get_if<VectorValue>(&values[i].value))
      vector->resize(length);
  }
}

}  // namespace

MetricReader::MetricReader(const Snapshot& snapshot, std::string_view prefix) {
  if (snapshot.schema == nullptr) return;
  for (const auto& [family, all_series] : snapshot.schema->families) {
    if (!family.name.starts_with(prefix)) continue;
    const std::size_t first = values_.size();
    for (const Series& series : all_series) {
      MetricValue& added =
          values_.emplace_back(MetricValue{family.name, series.labels, {}});
      switch (family.kind) {
        case MetricKind::kCounter:
          if (family.number == CounterNumber::kInteger) {
            const std::uint64_t count = snapshot.integer(series);
            added.value = CounterValue{static_cast<double>(count), count};
          } else {
            const double value = snapshot.real(series);
            added.value = CounterValue{value, whole(value)};
          }
          break;
        case MetricKind::kGauge:
          added.value = GaugeValue{snapshot.real(series)};
          break;
        case MetricKind::kHistogram:
          added.value = histogram_of(snapshot, series);
          break;
      }
    }
    if (family.kind == MetricKind::kCounter &&
        family.name.ends_with(kPerPosition))
      gather_positions(values_, first);
  }
  finish();
}

MetricReader::MetricReader(const Page& page, std::string_view prefix) {
  for (const PageFamily& family : page.families) {
    const bool is_counter = family.kind == PageKind::kCounter;
    const std::string_view name =
        is_counter ? without_total(family.name) : family.name;
    if (!name.starts_with(prefix) || family.kind == PageKind::kSummary)
      continue;
    const std::size_t first = values_.size();
    for (const PageSeries& series : family.series) {
      MetricValue& added = values_.emplace_back(
          MetricValue{std::string(name), labels_of(series), {}});
      if (is_counter) {
        added.value = CounterValue{series.value, whole(series.value)};
      } else if (family.kind == PageKind::kHistogram ||
                 family.kind == PageKind::kGaugeHistogram) {
        added.value = histogram_of(series);
      } else {
        added.value = GaugeValue{series.value};
      }
    }
    if (is_counter && name.ends_with(kPerPosition))
      gather_positions(values_, first);
  }
  finish();
}

MetricReader::MetricReader(const Registry& registry, std::string_view prefix)
    : MetricReader(
          [&] {
            Snapshot now;
            registry.snapshot(now);
            return now;
          }(),
          prefix) {}

void MetricReader::finish() { std::ranges::stable_sort(values_, before); }

std::vector<const MetricValue*> MetricReader::select(
    std::string_view name, const Labels& where) const {
  const auto is_before = [](const MetricValue& value, std::string_view text) {
    return value.name < text;
  };
  auto at = std::lower_bound(values_.begin(), values_.end(), name, is_before);
  if (at == values_.end() || at->name != name) {
    name = without_total(name);
    at = std::lower_bound(values_.begin(), values_.end(), name, is_before);
  }
  std::vector<const MetricValue*> found;
  for (; at != values_.end() && at->name == name; ++at) {
    if (has_labels(at->labels, where)) found.push_back(&*at);
  }
  return found;
}

template <class Value>
const Value* MetricReader::only(std::string_view name,
                                const Labels& where) const {
  const auto found = select(name, where);
  return found.size() == 1 ? std::get_if<Value>(&found.front()->value)
                           : nullptr;
}

std::optional<double> MetricReader::counter(std::string_view name,
                                            const Labels& where) const {
  const auto* found = only<CounterValue>(name, where);
  return found != nullptr ? std::optional(found->value) : std::nullopt;
}

std::optional<double> MetricReader::gauge(std::string_view name,
                                          const Labels& where) const {
  const auto* found = only<GaugeValue>(name, where);
  return found != nullptr ? std::optional(found->value) : std::nullopt;
}

const HistogramValue* MetricReader::histogram(std::string_view name,
                                              const Labels& where) const {
  return only<HistogramValue>(name, where);
}

const VectorValue* MetricReader::vector(std::string_view name,
                                        const Labels& where) const {
  return only<VectorValue>(name, where);
}

}  // namespace vllm_metrics::inline v0
