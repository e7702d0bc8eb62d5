#include "src/loggers/bank_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "src/loggers/options_check.h"
#include "vllm_metrics/catalogue/lifecycle.h"
#include "vllm_metrics/primitives/bucket_bounds.h"
#include "vllm_metrics/registry/labels.h"
#include "vllm_metrics/registry/native_histogram.h"

namespace vllm_metrics::inline v0 {
namespace {

LifecycleState state_of(const Lifecycle& lifecycle,
                        const StatLoggerOptions& options) {
  // Nearly all, without reading the version once more.
  if (!lifecycle.deprecated_in.has_value()) return LifecycleState::kCurrent;
  return state_of(lifecycle,
                  running_release(options).value_or(options.wire_version));
}

bool is_visible(const Lifecycle& lifecycle, const StatLoggerOptions& options) {
  switch (state_of(lifecycle, options)) {
    case LifecycleState::kCurrent:
    case LifecycleState::kDeprecated:
      return true;
    case LifecycleState::kHidden:
      return shows_hidden_families(options).value_or(false);
    case LifecycleState::kRemoved:
      return false;
  }
  return false;
}

bool is_on_page(const MetricSpec& spec, const StatLoggerOptions& options) {
  if (!is_visible(spec.lifecycle, options)) return false;
  if (spec.scope != Scope::kEngine || spec.since > options.wire_version)
    return false;
  switch (spec.condition) {
    case Condition::kAlways:
      return true;
    case Condition::kNanCheck:
      return options.compute_nans_in_logits;
    case Condition::kKvCacheMetrics:
      return options.kv_cache_metrics;
    case Condition::kSpeculative:
      return options.num_speculative_tokens.has_value() &&
             !options.is_diffusion;
    case Condition::kDiffusion:
      return options.is_diffusion;
    case Condition::kKvConnector:  // the connector brings them
    case Condition::kLora:
    case Condition::kEngineInitialized:
    case Condition::kHttpEndpoint:
    case Condition::kOtlpExporter:
      return false;
    case Condition::kSelfMetrics:
      return options.self_metrics;
  }
  return false;
}

// Of a request or a token.
bool is_latency(const MetricSpec& spec) {
  return spec.kind == MetricKind::kHistogram && spec.unit == "seconds" &&
         spec.condition == Condition::kAlways && spec.scope == Scope::kEngine;
}

// Of a request that has ended: those are the ones that a trace is known of.
bool has_exemplars(const MetricSpec& spec, const StatLoggerOptions& options) {
  return options.exemplars && is_latency(spec) &&
         spec.id != MetricId::kInterTokenLatency;
}

std::vector<double> bounds_of(const MetricSpec& spec,
                              const StatLoggerOptions& options) {
  const auto named =
      std::ranges::find(options.buckets, spec.name, &BucketOverride::family);
  if (named != options.buckets.end()) return named->bounds;
  if (is_latency(spec) && !options.latency_buckets.empty()) {
    return options.latency_buckets;
  }
  if (!spec.buckets.empty()) return {spec.buckets.begin(), spec.buckets.end()};
  return one_two_five_buckets(options.max_model_len);
}

std::optional<NativeHistogramOptions> native_of(
    std::string_view family, const StatLoggerOptions& options) {
  const auto named = std::ranges::find(options.native_histograms, family,
                                       &NativeOverride::family);
  if (named != options.native_histograms.end()) return named->options;
  const MetricSpec* spec = find_spec(family);
  return spec != nullptr && is_latency(*spec)
             ? options.native_latency_histograms
             : std::nullopt;
}

// The values of the label beside model_name and engine; without one, a single
// empty text stands for the one series.
std::vector<std::string> label_values(const MetricSpec& spec,
                                      const StatLoggerOptions& options) {
  if (spec.extra_label.name.empty()) return {""};
  std::vector<std::string> values(spec.extra_label.values.begin(),
                                  spec.extra_label.values.end());
  if (spec.id == MetricId::kSpecDecodeNumAcceptedTokensPerPos) {
    for (std::int64_t i = 0; i < options.num_speculative_tokens.value_or(0);
         ++i) {
      values.push_back(std::to_string(i));
    }
  }
  return values;
}

LabelSet with(const LabelSet& labels, const Labels& further) {
  if (further.empty()) return labels;
  Labels all = labels;
  all.insert(all.end(), further.begin(), further.end());
  return all;
}

// What comes behind the catalogue's: the connector's metrics, then the
// engine's own.
std::vector<StepMetrics::Metric> own_metrics(const StatLoggerOptions& options) {
  std::vector<StepMetrics::Metric> own;
  if (options.kv_connector != nullptr) own = options.kv_connector->families();
  for (StepMetrics::Metric& metric : own) {
    const auto named = std::ranges::find(options.buckets, metric.family.name,
                                         &BucketOverride::family);
    if (named != options.buckets.end()) metric.buckets = named->bounds;
    if (const auto native = native_of(metric.family.name, options))
      metric.native = native;
  }
  own.insert(own.end(), options.step_metrics.metrics.begin(),
             options.step_metrics.metrics.end());
  return own;
}

// One that is not has its cells all the same: a place means one metric in
// every release.
bool is_on_page(const StepMetrics::Metric& metric,
                const StatLoggerOptions& options) {
  const MetricSpec* spec = find_spec(metric.family.name);
  if (spec != nullptr && spec->condition == Condition::kKvConnector &&
      spec->since > options.wire_version)
    return false;
  return is_visible(metric.lifecycle, options);
}

// Series with one name are one family.
SchemaFamily& family_for(std::vector<SchemaFamily>& families, Family family) {
  const auto same = std::ranges::find(families, family, &SchemaFamily::family);
  if (same != families.end()) return *same;
  return families.emplace_back(SchemaFamily{std::move(family), {}});
}

}  // namespace

absl::StatusOr<BankLayout> BankLayout::create(
    const StatLoggerOptions& options) {
  BankLayout layout;
  layout.positions_ =
      static_cast<std::size_t>(options.num_speculative_tokens.value_or(0));
  layout.cells_.fill({kAbsent, nullptr});
  for (const MetricSpec& spec : catalogue()) {
    if (!is_on_page(spec, options)) continue;
    if (auto status = layout.add(spec, options); !status.ok()) return status;
  }
  for (const StepMetrics::Metric& metric : own_metrics(options)) {
    if (auto status = layout.add(metric); !status.ok()) return status;
  }
  layout.connector_count_ =
      layout.own_.size() - options.step_metrics.metrics.size();
  return layout;
}

absl::StatusOr<HistogramCells> BankLayout::add(
    MetricKind kind, std::size_t series, std::string_view family,
    std::span<const double> bounds,
    const std::optional<NativeHistogramOptions>& native) {
  if (native.has_value()) {
    const absl::Status status =
        kind == MetricKind::kHistogram
            ? check_native(*native)
            : absl::InvalidArgumentError("native; allowed: histograms");
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          fmt::format("family {}: {}", family, std::string(status.message())));
    }
  }
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
    const auto place = static_cast<std::size_t>(same - bounds_.begin());
    if (place == bounds_.size()) {
      bounds_.push_back(
          std::make_shared<const BucketBounds>(*std::move(checked)));
    }
    cells = {cell_count_, bounds_[place].get(),
             native.has_value() ? native->max_buckets : 0};
    if (native.has_value()) natives_.push_back({cells, *native});
    size = word_count(kind, cells.bounds, cells.native_buckets);
  }
  cell_count_ += static_cast<std::uint32_t>(size * series);
  return cells;
}

absl::Status BankLayout::add(const MetricSpec& spec,
                             const StatLoggerOptions& options) {
  const auto bounds = spec.kind == MetricKind::kHistogram
                          ? bounds_of(spec, options)
                          : std::vector<double>();
  const auto cells = add(spec.kind, label_values(spec, options).size(),
                         spec.name, bounds, native_of(spec.name, options));
  if (!cells.ok()) return cells.status();
  cells_[index(spec.id)] = *cells;
  if (has_exemplars(spec, options)) {
    exemplars_.push_back({spec.id, cell_count_, cells->bounds});
    cell_count_ += static_cast<std::uint32_t>(kExemplarWords *
                                              cells->bounds->bucket_count());
  }
  return absl::OkStatus();
}

absl::Status BankLayout::add(const StepMetrics::Metric& metric) {
  const auto cells = add(metric.family.kind, 1, metric.family.name,
                         metric.buckets, metric.native);
  if (!cells.ok()) return cells.status();
  own_.push_back({metric.family.kind, metric.family.number, *cells});
  return absl::OkStatus();
}

Series BankLayout::series(MetricKind kind, const HistogramCells& first,
                          std::size_t label_value, std::size_t engine,
                          LabelSet labels) const {
  const std::size_t stride = kind == MetricKind::kGauge ? kGaugeCells : 1;
  Series made{.labels = std::move(labels),
              .offset = static_cast<std::uint32_t>(
                  engine * cell_count_ + first.first + stride * label_value)};
  const auto owner = std::ranges::find(
      bounds_, first.bounds, [](const auto& bounds) { return bounds.get(); });
  if (owner != bounds_.end()) made.bounds = *owner;
  made.native_buckets = first.native_buckets;
  return made;
}

std::vector<SchemaFamily> BankLayout::schema(
    const StatLoggerOptions& options) const {
  const double now = options.clock->wall();
  // One memory for all families without further labels.
  std::vector<LabelSet> engine_labels;
  for (const int engine_index : options.engine_indexes) {
    engine_labels.push_back(
        normalized(LabelSet{{"engine", std::to_string(engine_index)},
                            {"model_name", options.model_name}}));
  }
  std::vector<SchemaFamily> families;
  for (const MetricSpec& spec : catalogue()) {
    if (!has(spec.id)) continue;
    SchemaFamily& made =
        families.emplace_back(SchemaFamily{family_of(spec), {}});
    made.family.help = help_of(spec, state_of(spec.lifecycle, options));
    const auto values = label_values(spec, options);
    for (std::size_t engine = 0; engine < options.engine_indexes.size();
         ++engine) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        LabelSet labels = engine_labels[engine];
        if (!spec.extra_label.name.empty()) {
          labels =
              with(labels, {{std::string(spec.extra_label.name), values[i]}});
        }
        made.series.push_back(series(spec.kind, histogram(spec.id), i, engine,
                                     std::move(labels)));
        made.series.back().created = now;
        if (has_exemplars(spec, options)) {
          made.series.back().exemplars = static_cast<std::uint32_t>(
              made.series.back().bounds->bucket_count());
        }
      }
    }
  }
  const auto own = own_metrics(options);
  for (std::size_t i = 0; i < own_.size(); ++i) {
    if (!is_on_page(own[i], options)) continue;
    Family family = own[i].family;
    family.help = help_of(family.help, own[i].lifecycle,
                          state_of(own[i].lifecycle, options));
    SchemaFamily& made = family_for(families, std::move(family));
    for (std::size_t engine = 0; engine < options.engine_indexes.size();
         ++engine) {
      made.series.push_back(series(own[i].family.kind, own_[i].cells, 0, engine,
                                   with(engine_labels[engine], own[i].labels)));
      made.series.back().created = now;
    }
  }
  return families;
}

}  // namespace vllm_metrics::inline v0
