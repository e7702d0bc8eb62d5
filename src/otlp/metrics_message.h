#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "src/otlp/settings.h"
#include "src/otlp/stream_state.h"
#include "vllm_metrics/registry/snapshot.h"

namespace vllm_metrics::inline v0::otlp {

// What a metrics request is made of.
struct MetricsMessage {
  const Snapshot& snapshot;
  const StreamState& state;  // aligned with the snapshot
  double time;               // of the snapshot, seconds since 1970
  Temporality temporality;
  bool exponential;  // families with native buckets as exponential histograms
  const Pairs& resource;
  const std::optional<GenAiMetrics>& gen_ai;  // unset: without them
};

struct EncodedMetrics {
  std::string bytes = {};
  std::uint64_t points = 0;
};

// An ExportMetricsServiceRequest. How the page's metrics become OTLP's:
//   counter    Sum, monotonic, under the name of its sample (with `_total`);
//              an integer, a double past 2^63 - 1 and for real counters
//   gauge      Gauge, a double; an info family too
//   histogram  Histogram with explicit bounds (the last bucket is +Inf); or
//              ExponentialHistogram, when all series have native buckets;
//              with the exemplars that OpenMetrics shows
// Behind them, if wanted, the metrics of OpenTelemetry's conventions
// (catalogue/otlp_names.h), which are histograms of the page again.
// Definition: opentelemetry/proto/metrics/v1/metrics.proto.
EncodedMetrics encode(const MetricsMessage& message);

}  // namespace vllm_metrics::inline v0::otlp
