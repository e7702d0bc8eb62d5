#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "vllm_metrics/export.h"
#include "vllm_metrics/exposition/histogram_value.h"
#include "vllm_metrics/registry/labels.h"
#include "vllm_metrics/registry/registry.h"
#include "vllm_metrics/registry/snapshot.h"

namespace vllm_metrics::inline v0 {

struct Page;

struct CounterValue {
  double value = 0.0;
  // Cut off; from a registry exact beyond 2^53, where `value` is not.
  std::uint64_t whole = 0;
};
struct GaugeValue {
  double value = 0.0;
};
// Counters of a family `..._per_pos`, by the number in their label `position`;
// 0 where there is none. All of one family are as long as the longest.
using VectorValue = std::vector<std::uint64_t>;

// One series and its value at the moment of the snapshot or page.
struct MetricValue {
  std::string name;  // the family's, without a suffix
  Labels labels;     // by name
  std::variant<CounterValue, GaugeValue, HistogramValue, VectorValue> value;
};

// The values of a registry or of a page, by name and labels: for tests, for a
// router or autoscaler inside the process, and for one outside that reads the
// page of others. What happened between two moments is in histogram_value.h.
//
// A name is the family's, with or without a counter's `_total`. `where` names
// labels that the series has, perhaps among others; the functions that give one
// value give none unless exactly one series fits.
//
// From a page, untyped, info and state-set samples are gauges; summaries are
// left out (they are in the Page).
// Thread-safety: a value. Its text is its own.
// Definition: vLLM's get_metrics_snapshot().
class VLLM_METRICS_EXPORT MetricReader {
 public:
  // Only families whose names begin with `prefix`, e.g. "vllm:".
  explicit MetricReader(const Snapshot& snapshot, std::string_view prefix = {});
  explicit MetricReader(const Page& page, std::string_view prefix = {});
  // What the registry knows now.
  explicit MetricReader(const Registry& registry, std::string_view prefix = {});

  // All of them, by name and labels.
  std::span<const MetricValue> all() const { return values_; }

  std::vector<const MetricValue*> select(std::string_view name,
                                         const Labels& where = {}) const;

  std::optional<double> counter(std::string_view name,
                                const Labels& where = {}) const;
  std::optional<double> gauge(std::string_view name,
                              const Labels& where = {}) const;
  const HistogramValue* histogram(std::string_view name,
                                  const Labels& where = {}) const;
  const VectorValue* vector(std::string_view name,
                            const Labels& where = {}) const;

 private:
  void finish();
  template <class Value>
  const Value* only(std::string_view name, const Labels& where) const;

  std::vector<MetricValue> values_;
};

}  // namespace vllm_metrics::inline v0
