#include "vllm_metrics/loggers/kv_connector.h"

namespace vllm_metrics::inline v0 {
namespace {

constinit const Counter kNeverSampled;

}  // namespace

KvConnectorLog::~KvConnectorLog() = default;
KvConnectorMetrics::~KvConnectorMetrics() = default;

const Counter& KvConnectorMetrics::sampled() const noexcept {
  return kNeverSampled;
}

}  // namespace vllm_metrics::inline v0
