#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "vllm_metrics/export.h"
#include "vllm_metrics/loggers/kv_connector.h"

namespace vllm_metrics::inline v0 {

// The `vllm:kv_offload_*` families and their record "KV Transfer metrics: ...",
// for an engine that offloads KV blocks. Its statistics are OffloadingStats.
//
// The three families that vLLM has deprecated, kv_offload_total_bytes,
// kv_offload_total_time and kv_offload_size, are written beside their
// successors.
// The text record has what happened in the interval only, as vLLM's: sums, and
// for a histogram count and sum. Memory: none beyond that.
// Definition: vLLM OffloadPromMetrics and TypedKVConnectorStats.reduce.
class VLLM_METRICS_EXPORT OffloadingConnectorMetrics final
    : public KvConnectorMetrics {
 public:
  OffloadingConnectorMetrics() = default;
  ~OffloadingConnectorMetrics() override;

  std::string_view connector() const noexcept override { return "offloading"; }
  std::vector<StepMetrics::Metric> families() const override;
  void record(const KvConnectorStats& stats, StepWriter& writer) const override;
  std::unique_ptr<KvConnectorLog> make_log() const override;
};

}  // namespace vllm_metrics::inline v0
