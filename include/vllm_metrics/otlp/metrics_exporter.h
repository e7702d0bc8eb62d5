#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "vllm_metrics/export.h"
#include "vllm_metrics/otlp/options.h"

namespace vllm_metrics::inline v0 {
class Registry;
}

namespace vllm_metrics::inline v0::otlp {

// Pushes the page of a registry to an OpenTelemetry collector: each interval a
// snapshot, as OTLP over HTTP in protobuf, or as a line of JSON into
// Options::metrics_file. Names, labels and values are the page's.
//
// A thread of its own reads, encodes, sends and waits; no step waits for it. A
// request that fails for a reason that may pass (no connection, 429, 502, 503,
// 504) is sent again after 1 s, 1.5 s, ... up to 5 s, each 20 % more or less,
// or after the server's `Retry-After`, while the export's time lasts. Then:
//   cumulative  the next export says it all
//   delta       what was not taken is part of the next points. If the server
//               may have taken it, the same bytes are sent again, before newer
//               ones, until it says so: who drops points that it has (series,
//               start, time) counts nothing twice. If it then refuses the bytes
//               (400, 413, 415, 422), they are given up, and counted as lost.
// Nothing is queued beside that, so memory does not grow with an outage.
// Deltas of series of this process count from the series' begin, of shared ones
// from the exporter's: a second exporter on one registry, after the first was
// shut down, tells the former once more. Keep one, or be cumulative.
//
// Self-metrics, on the same page: vllm_metrics_otlp_exports_total by outcome,
// vllm_metrics_otlp_lost_items_total.
//
// Thread-safety: every member from any thread.
// Errors: start() returns InvalidArgument naming the option or the variable,
// its value and what is allowed, AlreadyExists for a registry that is exported
// already, and FailedPrecondition for a shared one that is only read: it has no
// place for the self-metrics. Afterwards nothing fails towards the engine.
// Fork: the child exports nothing.
// Definition: OpenTelemetry Protocol 1.x, OTLP/HTTP; the metrics data model;
// the SDK's periodic exporting reader.
class VLLM_METRICS_EXPORT MetricsExporter {
 public:
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<MetricsExporter>> start(
      std::shared_ptr<Registry> registry, Options options = {});

  ~MetricsExporter();  // shutdown()
  MetricsExporter(const MetricsExporter&) = delete;
  MetricsExporter& operator=(const MetricsExporter&) = delete;

  // Exports now. True: the server took it within `timeout` seconds.
  bool flush(double timeout = 5.0);

  // Exports a last time, within `timeout` seconds, and ends the thread. What
  // is under way then is cancelled: over HTTP at once, else as soon as
  // Transport::send() returns. May be called twice, from two threads too; the
  // shortest timeout counts.
  void shutdown(double timeout = 5.0);

 private:
  class Worker;
  explicit MetricsExporter(std::unique_ptr<Worker> worker) noexcept;

  std::unique_ptr<Worker> worker_;
};

}  // namespace vllm_metrics::inline v0::otlp
