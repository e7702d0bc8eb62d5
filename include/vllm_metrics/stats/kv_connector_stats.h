#pragma once

#include <string_view>

#include "vllm_metrics/export.h"

namespace vllm_metrics::inline v0 {

// What a KV connector did in one step. Each connector has its own struct
// derived from this; the loggers hand it to the connector's own description
// (loggers/kv_connector.h) and never look inside.
//
// Thread-safety: none; the engine refills one per step.
// Definition: vLLM KVConnectorStats.
class VLLM_METRICS_EXPORT KvConnectorStats {
 public:
  virtual ~KvConnectorStats();

  // Whose statistics these are, e.g. "nixl": what they are recorded by has the
  // same name, or does not look at them.
  virtual std::string_view connector() const noexcept = 0;

  // True when nothing happened.
  virtual bool empty() const noexcept = 0;

 protected:
  KvConnectorStats() = default;
  KvConnectorStats(const KvConnectorStats&) = default;
  KvConnectorStats& operator=(const KvConnectorStats&) = default;
};

}  // namespace vllm_metrics::inline v0
