#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "vllm_metrics/export.h"
#include "vllm_metrics/loggers/kv_connector.h"

namespace vllm_metrics::inline v0 {

// Several KV connectors at once: the families of all of them, and one record
// "KV Transfer metrics: nixl={...}, offloading={...}" with what each would
// write, of those that did something. Its statistics are MultiConnectorStats.
//
// Errors: a part of a step's statistics whose connector is not among these is
// counted in `vllm_metrics_rejected_samples_total`. Two that bring the same
// series are an error of StatLoggerManager::create().
// Definition: vLLM MultiConnector.
class VLLM_METRICS_EXPORT MultiConnectorMetrics final
    : public KvConnectorMetrics {
 public:
  using Connectors = std::vector<std::shared_ptr<const KvConnectorMetrics>>;

  // Null ones are left out.
  explicit MultiConnectorMetrics(const Connectors& connectors);
  ~MultiConnectorMetrics() override;

  std::string_view connector() const noexcept override { return "multi"; }
  std::vector<StepMetrics::Metric> families() const override;
  void record(const KvConnectorStats& stats, StepWriter& writer) const override;
  std::unique_ptr<KvConnectorLog> make_log() const override;
  std::uint64_t sampled() const noexcept override;
  void begin(StepWriter& writer) const override;

 private:
  struct Part {
    std::shared_ptr<const KvConnectorMetrics> connector;
    std::size_t first;  // of families(), and how many are its own
    std::size_t count;
  };

  template <class Write>
  static void write(const Part& part, StepWriter& writer, Write write);

  std::vector<Part> parts_;
};

}  // namespace vllm_metrics::inline v0
