#pragma once

#include <memory>
#include <optional>
#include <string>

#include "src/otlp/delivery.h"
#include "src/otlp/exporter_metrics.h"
#include "src/otlp/metrics_message.h"
#include "src/otlp/settings.h"
#include "src/otlp/stream_state.h"
#include "vllm_metrics/loggers/clock.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics::inline v0::otlp {

// One export after the other: what a MetricsExporter does each interval.
// Thread-safety: none.
class MetricsPush {
 public:
  MetricsPush(std::shared_ptr<Registry> registry, const Settings& settings,
              bool exponential, std::shared_ptr<const Clock> clock,
              Delivery delivery, std::unique_ptr<ExporterMetrics> metrics);

  // Reads the registry and sends it, within `seconds`. True: it was taken.
  bool run(double seconds);

 private:
  // Delta points of which nobody knows whether they were taken.
  struct Pending {
    EncodedMetrics request;
    Snapshot snapshot;
    double time;
  };

  EncodedMetrics read(double time);
  Delivered send(const EncodedMetrics& request, double deadline);
  bool settle_pending(double deadline);
  void give_up(const EncodedMetrics& request);

  std::shared_ptr<Registry> registry_;
  Temporality temporality_;
  bool exponential_;
  Pairs resource_;
  std::optional<GenAiMetrics> gen_ai_;
  std::shared_ptr<const Clock> clock_;  // for time stamps
  Delivery delivery_;
  std::unique_ptr<ExporterMetrics> metrics_;

  StreamState state_;
  Snapshot snapshot_;
  std::optional<Pending> pending_;
};

}  // namespace vllm_metrics::inline v0::otlp
