#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "vllm_metrics/loggers/prometheus_stat_logger.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics {

// Has exemplars, for pages that other parsers read: request number n, from 1 to
// 40, took n / 4 seconds and has n in its ids Empty if it cannot be made.
inline Snapshot snapshot_of_traced_requests(
    std::optional<NativeHistogramOptions> native = {}) {
  StatLoggerOptions options;
  options.model_name = "m";
  options.max_model_len = 8192;
  options.registry = Registry::create();
  options.exemplars = true;
  options.native_latency_histograms = native;
  const auto logger = PrometheusStatLogger::create(options);
  if (!logger.ok()) return {};
  IterationStats iteration;
  for (std::uint8_t n = 1; n <= 40; ++n) {
    FinishedRequestStats& request = iteration.finished_requests.emplace_back();
    request.e2e_latency = n / 4.0;
    request.request_id = "request-" + std::to_string(n);
    request.trace.trace_id.back() = n;
    request.trace.span_id.back() = n;
    request.trace.flags = 1;
  }
  (*logger)->record({.engine_index = 0, .iteration = &iteration});
  Snapshot snapshot;
  options.registry->snapshot(snapshot);
  return snapshot;
}

}  // namespace vllm_metrics
