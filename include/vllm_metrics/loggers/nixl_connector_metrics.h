#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "vllm_metrics/export.h"
#include "vllm_metrics/loggers/kv_connector.h"
#include "vllm_metrics/primitives/counter.h"

namespace vllm_metrics::inline v0 {

// The seven `vllm:nixl_*` families and the record "KV Transfer metrics: ...".
// Its statistics are NixlStats.
//
// The text record is exact, P90 included, up to kMaxExactTransfers successful
// transfers in an interval. Beyond, P90 is that of a uniform sample of as many;
// everything else stays exact.
// Memory: 512 KiB for each text logger, taken at the first transfer.
// Definition: vLLM NixlPromMetrics and NixlKVConnectorStats.reduce.
class VLLM_METRICS_EXPORT NixlConnectorMetrics final
    : public KvConnectorMetrics {
 public:
  static constexpr std::size_t kMaxExactTransfers = 16'384;

  NixlConnectorMetrics();
  ~NixlConnectorMetrics() override;

  std::string_view connector() const noexcept override { return "nixl"; }
  std::vector<StepMetrics::Metric> families() const override;
  void record(const KvConnectorStats& stats, StepWriter& writer) const override;
  std::unique_ptr<KvConnectorLog> make_log() const override;
  std::uint64_t sampled() const noexcept override { return sampled_->value(); }

 private:
  std::shared_ptr<Counter> sampled_;  // also held by the logs
};

}  // namespace vllm_metrics::inline v0
