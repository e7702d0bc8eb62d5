// Writes an OpenMetrics page with exemplars, for tests that read it with
// other parsers: request number n, from 1 to 40, took n / 4 seconds and has n
// in its ids.

#include <cstdint>
#include <iostream>

#include "vllm_metrics/exposition/open_metrics.h"
#include "vllm_metrics/loggers/prometheus_stat_logger.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics {
namespace {

int run() {
  StatLoggerOptions options;
  options.model_name = "m";
  options.max_model_len = 8192;
  options.registry = Registry::create();
  options.exemplars = true;
  const auto logger = PrometheusStatLogger::create(options);
  if (!logger.ok()) return 1;
  IterationStats iteration;
  for (std::uint8_t n = 1; n <= 40; ++n) {
    FinishedRequestStats& request = iteration.finished_requests.emplace_back();
    request.e2e_latency = n / 4.0;
    request.trace.trace_id.back() = n;
    request.trace.span_id.back() = n;
    request.trace.flags = 1;
  }
  (*logger)->record({.engine_index = 0, .iteration = &iteration});
  std::cout << OpenMetrics().render(*options.registry);
  return 0;
}

}  // namespace
}  // namespace vllm_metrics

int main() { return vllm_metrics::run(); }
