#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vllm_metrics/export.h"
#include "vllm_metrics/loggers/kv_connector.h"

namespace vllm_metrics::inline v0 {

// How the connector is set up: the labels of vllm:simple_kv_offload_info.
struct SimpleOffloadSetup {
  std::string backend = "cpu";  // or "disk"
  bool page_cache = false;
  bool lazy_offload = false;
  std::int64_t capacity_blocks = 0;  // of the offload pool
};

// The `vllm:simple_kv_offload_*` families and their record "KV Transfer
// metrics: ...". Its statistics are SimpleOffloadStats. vLLM has them after
// 0.27: with StatLoggerOptions::wire_version {0, 27} the page has none.
//
// The info metric is 1 from the start; in vLLM from the first step with
// statistics. Memory: one number for each pair of the text record.
// Definition: vLLM SimpleCPUOffloadPromMetrics and SimpleCPUOffloadStats.
class VLLM_METRICS_EXPORT SimpleOffloadConnectorMetrics final
    : public KvConnectorMetrics {
 public:
  explicit SimpleOffloadConnectorMetrics(SimpleOffloadSetup setup = {});
  ~SimpleOffloadConnectorMetrics() override;

  std::string_view connector() const noexcept override {
    return "simple_offload";
  }
  std::vector<StepMetrics::Metric> families() const override;
  void record(const KvConnectorStats& stats, StepWriter& writer) const override;
  std::unique_ptr<KvConnectorLog> make_log() const override;
  void begin(StepWriter& writer) const override;

 private:
  const SimpleOffloadSetup setup_;
};

}  // namespace vllm_metrics::inline v0
