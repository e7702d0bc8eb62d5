#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "vllm_metrics/catalogue/catalogue.h"
#include "vllm_metrics/loggers/options.h"
#include "vllm_metrics/primitives/bank.h"
#include "vllm_metrics/registry/schema.h"

namespace vllm_metrics::inline v0 {

// Which cell of an engine's bank holds what: the catalogue's families that are
// on the page under these options, then the engine's own step metrics. The
// same for every engine of a logger.
class BankLayout {
 public:
  // A step metric's place; one of the three by kind.
  struct Own {
    MetricKind kind;
    CounterNumber number;
    HistogramCells cells;  // counters and gauges: only `first`
  };

  // `options` as checked() returned them.
  static absl::StatusOr<BankLayout> create(const StatLoggerOptions& options);

  bool has(MetricId id) const noexcept {
    return cells_[index(id)].first != kAbsent;
  }

  // A counter; with a closed label, the cell of its value number `label_value`.
  std::uint32_t counter(MetricId id,
                        std::size_t label_value = 0) const noexcept {
    return cells_[index(id)].first + static_cast<std::uint32_t>(label_value);
  }
  GaugeCells gauge(MetricId id, std::size_t label_value = 0) const noexcept {
    return {cells_[index(id)].first +
            kGaugeCells * static_cast<std::uint32_t>(label_value)};
  }
  const HistogramCells& histogram(MetricId id) const noexcept {
    return cells_[index(id)];
  }

  // Those whose newest requests are kept, all of seconds; empty if not asked
  // for.
  struct Exemplars {
    MetricId id;
    std::uint32_t first;  // cell of the first bucket's
    const BucketBounds* bounds;
  };
  std::span<const Exemplars> exemplars() const noexcept { return exemplars_; }

  // How many positions of a speculative draft have a counter.
  std::size_t positions() const noexcept { return positions_; }

  // The KV connector's metrics, and the engine's own.
  std::span<const Own> connector() const noexcept {
    return std::span(own_).first(connector_count_);
  }
  std::span<const Own> own() const noexcept {
    return std::span(own_).subspan(connector_count_);
  }
  std::uint32_t cell_count() const noexcept { return cell_count_; }

  // Before anything is recorded to a new bank.
  void begin(Bank::Section& section) const noexcept {
    for (const Native& native : natives_)
      section.native(native.cells).reset(native.options);
  }

  // What the cells of all engines mean, for the registry: engine number i's
  // bank is copied to word i * cell_count().
  std::vector<SchemaFamily> schema(const StatLoggerOptions& options) const;

 private:
  static constexpr std::uint32_t kAbsent = UINT32_MAX;
  static constexpr std::uint32_t kGaugeCells = 2;  // value and time

  static std::size_t index(MetricId id) noexcept {
    return static_cast<std::size_t>(id);
  }

  // A histogram that has native buckets.
  struct Native {
    HistogramCells cells;
    NativeHistogramOptions options;
  };

  absl::StatusOr<HistogramCells> add(
      MetricKind kind, std::size_t series, std::string_view family,
      std::span<const double> bounds,
      const std::optional<NativeHistogramOptions>& native);
  absl::Status add(const MetricSpec& spec, const StatLoggerOptions& options);
  absl::Status add(const StepMetrics::Metric& metric);
  Series series(MetricKind kind, const HistogramCells& first,
                std::size_t label_value, std::size_t engine,
                LabelSet labels) const;

  std::array<HistogramCells, kMetricCount> cells_;
  std::vector<Own> own_;
  std::size_t connector_count_ = 0;  // of own_, the first
  std::size_t positions_ = 0;
  std::vector<std::shared_ptr<const BucketBounds>>
      bounds_;  // what HistogramCells point to
  std::vector<Native> natives_;
  std::vector<Exemplars> exemplars_;
  std::uint32_t cell_count_ = 0;
};

}  // namespace vllm_metrics::inline v0
