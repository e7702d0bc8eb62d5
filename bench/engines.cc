#include "engines.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <span>
#include <utility>

#include "vllm_metrics/catalogue/catalogue.h"
#include "vllm_metrics/loggers/nixl_connector_metrics.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics::bench {

StatLoggerOptions prometheus_only(std::size_t engines) {
  StatLoggerOptions options;
  options.model_name = "meta-llama/Llama-3.1-8B-Instruct";
  options.max_model_len = kMaxModelLen;
  options.engine_indexes.resize(engines);
  std::iota(options.engine_indexes.begin(), options.engine_indexes.end(), 0);
  options.default_loggers = false;
  return options;
}

StatLoggerOptions with_every_feature(std::size_t engines) {
  StatLoggerOptions options = prometheus_only(engines);
  options.compute_nans_in_logits = true;
  options.kv_cache_metrics = true;
  options.num_speculative_tokens = kSpecTokens;
  options.max_loras = 4;
  options.kv_connector = std::make_shared<NixlConnectorMetrics>();
  options.enable_mfu_metrics = true;
  options.cudagraph = {.mode = "FULL", .capture_sizes = {256}};
  return options;
}

std::unique_ptr<StatLoggerManager> make_manager(StatLoggerOptions options) {
  auto manager = StatLoggerManager::create(std::move(options));
  if (!manager.ok()) {
    std::fprintf(stderr, "%s\n", manager.status().ToString().c_str());
    std::exit(EXIT_FAILURE);
  }
  return *std::move(manager);
}

struct PrometheusCppPage::Metrics {
  explicit Metrics(prometheus::Registry& page) : registry(page) {}

  void add(const SchemaFamily& family);

  // Series of one family are engine by engine, each with all label values.
  template <class Metric>
  static Metric* at(
      const std::unordered_map<std::string, std::vector<Metric*>>& by_name,
      MetricId id, std::size_t engines, std::size_t engine,
      std::size_t label_value = 0) {
    const auto& all = by_name.at(std::string(spec_of(id).name));
    return all[engine * (all.size() / engines) + label_value];
  }

  prometheus::Registry& registry;
  std::unordered_map<std::string, std::vector<prometheus::Counter*>> counters;
  std::unordered_map<std::string, std::vector<prometheus::Gauge*>> gauges;
  std::unordered_map<std::string, std::vector<prometheus::Histogram*>>
      histograms;
};

void PrometheusCppPage::Metrics::add(const SchemaFamily& family) {
  const auto labels_of = [](const Series& series) {
    prometheus::Labels labels;
    for (const Label& label : series.labels) labels[label.name] = label.value;
    return labels;
  };
  const auto build = [&](auto builder, const std::string& suffix) -> auto& {
    return builder.Name(family.family.name + suffix)
        .Help(family.family.help)
        .Register(registry);
  };
  for (const Series& series : family.series) {
    const auto labels = labels_of(series);
    switch (family.family.kind) {
      case MetricKind::kCounter:
        counters[family.family.name].push_back(
            &build(prometheus::BuildCounter(), "_total").Add(labels));
        break;
      case MetricKind::kGauge:
        gauges[family.family.name].push_back(
            &build(prometheus::BuildGauge(), "").Add(labels));
        break;
      case MetricKind::kHistogram: {
        const auto bounds = series.bounds->values();
        histograms[family.family.name].push_back(
            &build(prometheus::BuildHistogram(), "")
                 .Add(labels, prometheus::Histogram::BucketBoundaries(
                                  bounds.begin(), bounds.end())));
        break;
      }
    }
  }
}

PrometheusCppPage::PrometheusCppPage(const Schema& schema, std::size_t engines)
    : registry_(std::make_shared<prometheus::Registry>(
          prometheus::Registry::InsertBehavior::Merge)) {
  Metrics metrics(*registry_);
  for (const SchemaFamily& family : schema.families) metrics.add(family);
  for (std::size_t e = 0; e < engines; ++e) {
    Engine& made = engines_.emplace_back();
    for (const Place& place : kGauges) {
      made.gauges.push_back(
          Metrics::at(metrics.gauges, place.id, engines, e, place.label_value));
    }
    for (const Place& place : kCounters) {
      made.counters.push_back(Metrics::at(metrics.counters, place.id, engines,
                                          e, place.label_value));
    }
    for (std::size_t reason = 0; reason < kFinishReasonNames.size(); ++reason) {
      made.success.push_back(Metrics::at(
          metrics.counters, MetricId::kRequestSuccess, engines, e, reason));
    }
    const auto histogram = [&](MetricId id) {
      return Metrics::at(metrics.histograms, id, engines, e);
    };
    made.step_tokens = histogram(MetricId::kIterationTokens);
    made.first_tokens = histogram(MetricId::kTimeToFirstToken);
    made.latencies = histogram(MetricId::kInterTokenLatency);
    for (const MetricId id : kRequestHistograms)
      made.requests.push_back(histogram(id));
  }
  const auto copy = [](MetricId id) {
    const auto bounds = spec_of(id).buckets;
    return std::vector<double>(bounds.begin(), bounds.end());
  };
  first_token_bounds_ = copy(MetricId::kTimeToFirstToken);
  latency_bounds_ = copy(MetricId::kInterTokenLatency);
}

PrometheusCppPage::~PrometheusCppPage() = default;

void PrometheusCppPage::record_scalars(const FlatStep& step, Engine& engine) {
  for (std::size_t i = 0; i < step.gauges.size(); ++i)
    engine.gauges[i]->Set(step.gauges[i]);
  for (std::size_t i = 0; i < step.counters.size(); ++i)
    engine.counters[i]->Increment(step.counters[i]);
  engine.step_tokens->Observe(step.step_tokens);
  for (const FlatStep::Ended& ended : step.ended) {
    engine.success[ended.reason]->Increment();
    for (std::size_t i = 0; i < ended.values.size(); ++i)
      engine.requests[i]->Observe(ended.values[i]);
  }
}

void PrometheusCppPage::record(const FlatStep& step, std::size_t engine) {
  Engine& metrics = engines_[engine];
  record_scalars(step, metrics);
  for (const double v : step.first_tokens) metrics.first_tokens->Observe(v);
  for (const double v : step.latencies) metrics.latencies->Observe(v);
}

void PrometheusCppPage::record_batched(const FlatStep& step,
                                       std::size_t engine) {
  const auto observe = [this](prometheus::Histogram* histogram,
                              const std::vector<double>& bounds,
                              std::span<const double> values) {
    if (values.empty()) return;
    increments_.assign(bounds.size() + 1, 0.0);
    double sum = 0.0;
    for (const double v : values) {
      increments_[static_cast<std::size_t>(std::ranges::lower_bound(bounds, v) -
                                           bounds.begin())] += 1.0;
      sum += v;
    }
    histogram->ObserveMultiple(increments_, sum);
  };
  Engine& metrics = engines_[engine];
  record_scalars(step, metrics);
  observe(metrics.first_tokens, first_token_bounds_, step.first_tokens);
  observe(metrics.latencies, latency_bounds_, step.latencies);
}

std::string PrometheusCppPage::text() const {
  return prometheus::TextSerializer().prometheus::Serializer::Serialize(
      registry_->Collect());
}

}  // namespace vllm_metrics::bench
