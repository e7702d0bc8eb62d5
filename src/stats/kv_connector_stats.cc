#include "vllm_metrics/stats/kv_connector_stats.h"

namespace vllm_metrics::inline v0 {

KvConnectorStats::~KvConnectorStats() = default;

}  // namespace vllm_metrics::inline v0
