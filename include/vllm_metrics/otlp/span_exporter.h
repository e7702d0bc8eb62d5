#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "vllm_metrics/export.h"
#include "vllm_metrics/loggers/options.h"
#include "vllm_metrics/otlp/options.h"

namespace vllm_metrics::inline v0 {
class Registry;
}

namespace vllm_metrics::inline v0::otlp {

// Makes a span of each request that ended, sampled by its trace context
// (RequestStateStats::trace), and pushes them to an OpenTelemetry collector: a
// server span `llm_request` under the caller's, and under it `queue`, `prefill`
// and `decode`, as long as the values that the histograms of the same names
// observe. Attributes are those of vLLM's spans and of OpenTelemetry's gen_ai
// conventions.
//
// In a step: of each sampled request a few words are copied into memory that
// was set aside, without a lock. A thread of its own makes spans and sends
// them, as MetricsExporter does, except that a batch which was not taken is
// given up: spans are not in the next one. All that is lost is counted.
//
// Unit: times of spans are those of the engine's wall clock
// (RequestStateStats::arrival_time, IterationStats::iteration_timestamp).
// Thread-safety: every member from any thread.
// Errors: start() as MetricsExporter's; the registry gets the self-metrics
// only. Nothing fails towards the engine.
// Lifetime: loggers of factory() may outlive it; then nothing is sent.
// Definition: OpenTelemetry Protocol 1.x, OTLP/HTTP; vLLM's tracing.
class VLLM_METRICS_EXPORT SpanExporter {
 public:
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<SpanExporter>> start(
      std::shared_ptr<Registry> registry, Options options = {});

  ~SpanExporter();  // shutdown()
  SpanExporter(const SpanExporter&) = delete;
  SpanExporter& operator=(const SpanExporter&) = delete;

  // For StatLoggerOptions::factories.
  StatLoggerFactory factory();

  // Sends what there is. True: all of it was taken within `timeout` seconds.
  bool flush(double timeout = 5.0);

  // Sends a last time, within `timeout` seconds, and ends the thread. What is
  // under way then is cancelled: over HTTP at once, else as soon as
  // Transport::send() returns. May be called twice, from two threads too; the
  // shortest timeout counts. What was not sent, and what ends later, is
  // counted as lost.
  void shutdown(double timeout = 5.0);

 private:
  struct State;
  explicit SpanExporter(std::unique_ptr<State> state) noexcept;

  std::unique_ptr<State> state_;
};

}  // namespace vllm_metrics::inline v0::otlp
