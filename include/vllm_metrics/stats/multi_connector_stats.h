#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "vllm_metrics/export.h"
#include "vllm_metrics/stats/kv_connector_stats.h"

namespace vllm_metrics::inline v0 {

// What several KV connectors of one engine did in one step: those that did
// something, in any order. The engine owns them; null ones are passed over.
//
// Definition: vLLM MultiKVConnectorStats.
class VLLM_METRICS_EXPORT MultiConnectorStats final : public KvConnectorStats {
 public:
  std::vector<const KvConnectorStats*> parts = {};

  std::string_view connector() const noexcept override { return "multi"; }
  bool empty() const noexcept override {
    return std::ranges::all_of(parts, [](const KvConnectorStats* part) {
      return part == nullptr || part->empty();
    });
  }
};

}  // namespace vllm_metrics::inline v0
