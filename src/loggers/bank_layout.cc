#include "src/loggers/bank_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "vllm_metrics/primitives/bucket_bounds.h"
#include "vllm_metrics/registry/labels.h"

namespace vllm_metrics::inline v0 {
namespace {

bool is_on_page(const MetricSpec& spec, const StatLoggerOptions& options) {
  if (spec.scope != Scope::kEngine || spec.since > options.wire_version)
    return false;
  switch (spec.condition) {
    case Condition::kAlways:
      return true;
    case Condition::kNanCheck:
      return options.compute_nans_in_logits;
    case Condition::kKvCacheMetrics:
      return options.kv_cache_metrics;
    case Condition::kEngineInitialized:
      return false;
    case Condition::kSelfMetrics:
      return options.self_metrics;
  }
  return false;
}

std::vector<double> bounds_of(const MetricSpec& spec,
                              const StatLoggerOptions& options) {
  const auto named =
      std::ranges::find(options.buckets, spec.name, &BucketOverride::family);
  if (named != options.buckets.end()) return named->bounds;
  if (spec.unit == "seconds" && !options.latency_buckets.empty())
    return options.latency_buckets;
  if (!spec.buckets.empty()) return {spec.buckets.begin(), spec.buckets.end()};
  return one_two_five_buckets(options.max_model_len);
}

std::size_t series_per_engine(const MetricSpec& spec) {
  return std::max<std::size_t>(1, spec.extra_label.values.size());
}

Family family_of(const MetricSpec& spec) {
  return {.name = std::string(spec.name),
          .help = std::string(spec.help),
          .kind = spec.kind,
          .number = spec.number};
}

}  // namespace

absl::StatusOr<BankLayout> BankLayout::create(
    const StatLoggerOptions& options) {
  BankLayout layout;
  layout.cells_.fill({kAbsent, nullptr});
  for (const MetricSpec& spec : catalogue()) {
    if (!is_on_page(spec, options)) continue;
    if (auto status = layout.add(spec, options); !status.ok()) return status;
  }
  for (const StepMetrics::Metric& metric : options.step_metrics.metrics) {
    if (auto status = layout.add(metric); !status.ok()) return status;
  }
  return layout;
}

absl::StatusOr<HistogramCells> BankLayout::add(MetricKind kind,
                                               std::size_t series,
                                               std::string_view family,
                                               std::span<const double> bounds) {
  HistogramCells cells{cell_count_, nullptr};
  std::size_t size = kind == MetricKind::kGauge ? kGaugeCells : 1;
  if (kind == MetricKind::kHistogram) {
    std::string why;
    auto checked = BucketBounds::create(bounds, &why);
    if (!checked.has_value())
      return absl::InvalidArgumentError(
          fmt::format("family {}: {}", family, why));
    // Families of one kind of latency share their bounds: the search tables
    // then share the cache.
    const auto same = std::ranges::find_if(
        bounds_, [&](const auto& known) { return *known == *checked; });
    if (same != bounds_.end()) {
      cells.bounds = same->get();
    } else {
      bounds_.push_back(
          std::make_shared<const BucketBounds>(*std::move(checked)));
      cells.bounds = bounds_.back().get();
    }
    size = word_count(kind, cells.bounds);
  }
  cell_count_ += static_cast<std::uint32_t>(size * series);
  return cells;
}

absl::Status BankLayout::add(const MetricSpec& spec,
                             const StatLoggerOptions& options) {
  const auto bounds = spec.kind == MetricKind::kHistogram
                          ? bounds_of(spec, options)
                          : std::vector<double>();
  const auto cells = add(spec.kind, series_per_engine(spec), spec.name, bounds);
  if (!cells.ok()) return cells.status();
  cells_[index(spec.id)] = *cells;
  return absl::OkStatus();
}

absl::Status BankLayout::add(const StepMetrics::Metric& metric) {
  const auto cells =
      add(metric.family.kind, 1, metric.family.name, metric.buckets);
  if (!cells.ok()) return cells.status();
  own_.push_back({metric.family.kind, metric.family.number, *cells});
  return absl::OkStatus();
}

Series BankLayout::series(MetricKind kind, const HistogramCells& first,
                          std::size_t label_value, std::size_t engine,
                          Labels labels) const {
  const std::size_t stride = kind == MetricKind::kGauge ? kGaugeCells : 1;
  Series made{.labels = std::move(labels),
              .offset = static_cast<std::uint32_t>(
                  engine * cell_count_ + first.first + stride * label_value)};
  const auto owner = std::ranges::find(
      bounds_, first.bounds, [](const auto& bounds) { return bounds.get(); });
  if (owner != bounds_.end()) made.bounds = *owner;
  return made;
}

std::vector<SchemaFamily> BankLayout::schema(
    const StatLoggerOptions& options) const {
  const double now = options.clock->wall();
  const auto labels_of = [&](std::size_t engine) {
    return Labels{{"engine", std::to_string(options.engine_indexes[engine])},
                  {"model_name", options.model_name}};
  };
  std::vector<SchemaFamily> families;
  for (const MetricSpec& spec : catalogue()) {
    if (!has(spec.id)) continue;
    SchemaFamily& made =
        families.emplace_back(SchemaFamily{family_of(spec), {}});
    for (std::size_t engine = 0; engine < options.engine_indexes.size();
         ++engine) {
      for (std::size_t value = 0; value < series_per_engine(spec); ++value) {
        Labels labels = labels_of(engine);
        if (!spec.extra_label.values.empty()) {
          labels.push_back({std::string(spec.extra_label.name),
                            std::string(spec.extra_label.values[value])});
        }
        made.series.push_back(series(spec.kind, histogram(spec.id), value,
                                     engine, std::move(labels)));
        made.series.back().created = now;
      }
    }
  }
  for (std::size_t i = 0; i < own_.size(); ++i) {
    const StepMetrics::Metric& metric = options.step_metrics.metrics[i];
    SchemaFamily& made = families.emplace_back(SchemaFamily{metric.family, {}});
    for (std::size_t engine = 0; engine < options.engine_indexes.size();
         ++engine) {
      Labels labels = labels_of(engine);
      labels.insert(labels.end(), metric.labels.begin(), metric.labels.end());
      made.series.push_back(series(metric.family.kind, own_[i].cells, 0, engine,
                                   std::move(labels)));
      made.series.back().created = now;
    }
  }
  return families;
}

}  // namespace vllm_metrics::inline v0
