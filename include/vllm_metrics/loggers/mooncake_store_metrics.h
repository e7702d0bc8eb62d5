#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "vllm_metrics/export.h"
#include "vllm_metrics/loggers/kv_connector.h"
#include "vllm_metrics/primitives/counter.h"

namespace vllm_metrics::inline v0 {

// The `vllm:mooncake_store_operation*` families and the record "KV Transfer
// metrics: ...", for an engine that shares KV blocks through a Mooncake store.
// Its statistics are MooncakeStoreStats.
//
// The text record is exact, P90 included, up to kMaxExactCalls calls of one
// operation in an interval. Beyond, P90 is that of a uniform sample of as many;
// everything else stays exact.
// Memory: 128 KiB for each operation in use and text logger, taken at its
// first call.
// Definition: vLLM MooncakeStorePromMetrics and
// MooncakeStoreConnectorStats.reduce.
class VLLM_METRICS_EXPORT MooncakeStoreMetrics final
    : public KvConnectorMetrics {
 public:
  static constexpr std::size_t kMaxExactCalls = 16'384;

  MooncakeStoreMetrics();
  ~MooncakeStoreMetrics() override;

  std::string_view connector() const noexcept override {
    return "mooncake_store";
  }
  std::vector<StepMetrics::Metric> families() const override;
  void record(const KvConnectorStats& stats, StepWriter& writer) const override;
  std::unique_ptr<KvConnectorLog> make_log() const override;
  std::uint64_t sampled() const noexcept override { return sampled_->value(); }

 private:
  std::shared_ptr<Counter> sampled_;  // also held by the logs
};

}  // namespace vllm_metrics::inline v0
