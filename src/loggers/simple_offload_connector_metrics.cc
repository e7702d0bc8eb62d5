#include "vllm_metrics/loggers/simple_offload_connector_metrics.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "src/loggers/connector_families.h"
#include "vllm_metrics/catalogue/catalogue.h"
#include "vllm_metrics/stats/simple_offload_stats.h"

namespace vllm_metrics::inline v0 {
namespace {

// Places in families(): the order of the catalogue, one for each label value.
enum Place : std::size_t {
  kSaved,
  kIssued = kSaved + kSaveOutcomeCount,
  kCompleted,
  kUsed,
  kPending,
  kInfo,
};

const SimpleOffloadStats& of(const KvConnectorStats& stats) {
  return static_cast<const SimpleOffloadStats&>(stats);
}

class SimpleOffloadLog final : public KvConnectorLog {
 public:
  void observe(const KvConnectorStats& stats) override {
    interval_.aggregate(of(stats));
  }

  // Only what happened, and gauges that were told; as Python shows the labels.
  void finish(std::string& out) override {
    auto add = [&, is_first = true](MetricId id, std::string_view label,
                                    std::int64_t value) mutable {
      const MetricSpec& spec = spec_of(id);
      fmt::format_to(std::back_inserter(out), "{}{}{}{}={}",
                     std::exchange(is_first, false) ? "" : ", ", spec.name,
                     spec.kind == MetricKind::kCounter ? "_total" : "",
                     label.empty() ? "" : fmt::format(":('{}',)", label),
                     value);
    };
    const auto outcomes =
        spec_of(MetricId::kSimpleKvOffloadSaveOutcomes).extra_label.values;
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      if (interval_.save_outcomes[i] != 0)
        add(MetricId::kSimpleKvOffloadSaveOutcomes, outcomes[i],
            interval_.save_outcomes[i]);
    }
    if (interval_.num_load_blocks_issued != 0)
      add(MetricId::kSimpleKvOffloadLoadBlocks, "issued",
          interval_.num_load_blocks_issued);
    if (interval_.num_load_blocks_completed != 0)
      add(MetricId::kSimpleKvOffloadLoadBlocks, "completed",
          interval_.num_load_blocks_completed);
    if (interval_.used_blocks.has_value())
      add(MetricId::kSimpleKvOffloadUsedBlocks, "", *interval_.used_blocks);
    if (interval_.pending_store_blocks.has_value())
      add(MetricId::kSimpleKvOffloadPendingStoreBlocks, "",
          *interval_.pending_store_blocks);
    interval_.reset();
  }

 private:
  SimpleOffloadStats interval_;
};

}  // namespace

SimpleOffloadConnectorMetrics::SimpleOffloadConnectorMetrics(
    SimpleOffloadSetup setup)
    : setup_(std::move(setup)) {}
SimpleOffloadConnectorMetrics::~SimpleOffloadConnectorMetrics() = default;

std::vector<StepMetrics::Metric> SimpleOffloadConnectorMetrics::families()
    const {
  auto metrics = families_of_connector(connector());
  const auto truth = [](bool value) { return value ? "true" : "false"; };
  metrics[kInfo].labels = {
      {"backend", setup_.backend},
      {"page_cache", truth(setup_.page_cache)},
      {"lazy_offload", truth(setup_.lazy_offload)},
      {"capacity_blocks", std::to_string(setup_.capacity_blocks)}};
  return metrics;
}

void SimpleOffloadConnectorMetrics::begin(StepWriter& writer) const {
  writer.set(kInfo, 1.0);
}

void SimpleOffloadConnectorMetrics::record(const KvConnectorStats& stats,
                                           StepWriter& writer) const {
  const SimpleOffloadStats& step = of(stats);
  for (std::size_t i = 0; i < kSaveOutcomeCount; ++i)
    writer.inc(kSaved + i, step.save_outcomes[i]);
  writer.inc(kIssued, step.num_load_blocks_issued);
  writer.inc(kCompleted, step.num_load_blocks_completed);
  if (step.used_blocks.has_value())
    writer.set(kUsed, static_cast<double>(*step.used_blocks));
  if (step.pending_store_blocks.has_value())
    writer.set(kPending, static_cast<double>(*step.pending_store_blocks));
}

std::unique_ptr<KvConnectorLog> SimpleOffloadConnectorMetrics::make_log()
    const {
  return std::make_unique<SimpleOffloadLog>();
}

}  // namespace vllm_metrics::inline v0
