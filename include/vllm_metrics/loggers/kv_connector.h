#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vllm_metrics/export.h"
#include "vllm_metrics/loggers/step_metrics.h"
#include "vllm_metrics/stats/kv_connector_stats.h"

namespace vllm_metrics::inline v0 {

// What one text logger keeps of a connector between two log() calls.
//
// Thread-safety: none; its logger guards it.
class VLLM_METRICS_EXPORT KvConnectorLog {
 public:
  virtual ~KvConnectorLog();

  // Called for each step whose statistics are not empty. Bound what you keep:
  // log() may never be called.
  virtual void observe(const KvConnectorStats& stats) = 0;

  // Appends `key=value` pairs joined by ", " to `out` and begins the next
  // interval. Called only when something was observed.
  virtual void finish(std::string& out) = 0;
};

// How the loggers treat one kind of KV connector: its families on the page and
// its text record. Give one to StatLoggerOptions::kv_connector and hand its
// statistics in with SchedulerStats::kv_connector_stats; the loggers need not
// know it. NixlConnectorMetrics, OffloadingConnectorMetrics,
// MooncakeStoreMetrics and SimpleOffloadConnectorMetrics are some, and
// MultiConnectorMetrics is several at once.
//
// Thread-safety: const members, called for several engines at once.
class VLLM_METRICS_EXPORT KvConnectorMetrics {
 public:
  virtual ~KvConnectorMetrics();

  // As KvConnectorStats::connector(), e.g. "nixl".
  virtual std::string_view connector() const noexcept = 0;

  // Families in each engine's bank, written in the step's section.
  virtual std::vector<StepMetrics::Metric> families() const = 0;

  // Writes one step; `writer` counts metrics as families() does. Rules of
  // StepMetrics::write. `stats` are of this connector.
  virtual void record(const KvConnectorStats& stats,
                      StepWriter& writer) const = 0;

  // For one text logger. Null: the connector has no text record.
  virtual std::unique_ptr<KvConnectorLog> make_log() const { return nullptr; }

  // Observations that the text record could only sample, since there were more
  // than it keeps; shown as `vllm_metrics_sampled_kv_transfers_total`.
  // One that never samples need not say so.
  virtual std::uint64_t sampled() const noexcept { return 0; }

  // Called once for each engine, before its first step: writes what never
  // changes, e.g. the 1 of an info metric.
  virtual void begin(StepWriter&) const {}
};

}  // namespace vllm_metrics::inline v0
