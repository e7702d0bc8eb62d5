#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "vllm_metrics/export.h"

namespace vllm_metrics::inline v0 {

enum class MetricKind { kCounter, kGauge, kHistogram };

// How the word of a counter is read. Gauges and sums are always doubles,
// bucket counts always integers.
enum class CounterNumber {
  kInteger,  // events, tokens, bytes: exact up to 2^64 - 1
  kReal,     // seconds, estimates
};

// Which value a gauge has when several processes write it.
enum class GaugeMode {
  kMostRecent,
  kSum,
  kMax,
  kMin,
  kAll,
  kLiveSum,
  kLiveAll
};

// What all series of one name have in common.
struct Family {
  // [a-zA-Z_:][a-zA-Z0-9_:]*; a counter's `_total` may be left out
  std::string name = {};
  std::string help = {};  // one sentence, shown as HELP
  MetricKind kind = MetricKind::kGauge;
  CounterNumber number = CounterNumber::kInteger;  // counters only
  GaugeMode mode = GaugeMode::kMostRecent;         // gauges only
  // An info family: its series differ in their label names, and the same
  // series may be registered twice (both write one sample). Gauges only.
  bool info = false;
  // Of one sample, e.g. "seconds"; may be empty. OpenMetrics shows it where the
  // name ends in it, as it demands.
  std::string unit = {};

  friend bool operator==(const Family&, const Family&) = default;
};

VLLM_METRICS_EXPORT std::string_view name_of(
    MetricKind kind);  // "counter", "gauge", "histogram"

// OK, or InvalidArgument naming the family and what is allowed.
VLLM_METRICS_EXPORT absl::Status check_family(const Family& family);

// `family` with a counter's name without its `_total`, and help as valid UTF-8.
VLLM_METRICS_EXPORT Family normalized(Family family);

}  // namespace vllm_metrics::inline v0
