#include "vllm_metrics/loggers/kv_connector.h"

namespace vllm_metrics::inline v0 {

KvConnectorLog::~KvConnectorLog() = default;
KvConnectorMetrics::~KvConnectorMetrics() = default;

}  // namespace vllm_metrics::inline v0
