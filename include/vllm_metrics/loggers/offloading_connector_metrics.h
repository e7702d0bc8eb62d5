#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "vllm_metrics/export.h"
#include "vllm_metrics/loggers/kv_connector.h"

namespace vllm_metrics::inline v0 {

// How the connector is set up, where the page shows it.
struct OffloadingSetup {
  // How often KV must be asked for before it is stored; 0 and 1: once. From 2
  // on the page has vllm:kv_offload_stores_skipped.
  std::int64_t store_threshold = 0;
};

// The `vllm:kv_offload_*` families and their record "KV Transfer metrics: ...",
// for an engine that offloads KV blocks. Its statistics are OffloadingStats.
//
// The three families that vLLM has deprecated, kv_offload_total_bytes,
// kv_offload_total_time and kv_offload_size, are written beside their
// successors.
// The text record has what happened in the interval only, as vLLM's: sums, for
// a histogram count and sum, and of gauges the last that was told. Memory: none
// beyond that. Definition: vLLM OffloadPromMetrics and
// TypedKVConnectorStats.reduce.
class VLLM_METRICS_EXPORT OffloadingConnectorMetrics final
    : public KvConnectorMetrics {
 public:
  explicit OffloadingConnectorMetrics(OffloadingSetup setup = {});
  ~OffloadingConnectorMetrics() override;

  std::string_view connector() const noexcept override { return "offloading"; }
  std::vector<StepMetrics::Metric> families() const override;
  void record(const KvConnectorStats& stats, StepWriter& writer) const override;
  std::unique_ptr<KvConnectorLog> make_log() const override;

 private:
  const OffloadingSetup setup_;
};

}  // namespace vllm_metrics::inline v0
