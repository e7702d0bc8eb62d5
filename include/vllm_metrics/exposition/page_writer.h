#pragma once

#include <string_view>

#include "vllm_metrics/export.h"
#include "vllm_metrics/registry/snapshot.h"

namespace vllm_metrics::inline v0 {

// Writes pages in a format of an optional component, for a server that does not
// link it: http::ExposerOptions::protobuf.
//
// Thread-safety: one thread at a time. May throw; the client then gets 503.
class VLLM_METRICS_EXPORT PageWriter {
 public:
  virtual ~PageWriter();

  // The page; valid until the next call.
  virtual std::string_view render(const Snapshot& snapshot) = 0;
};

}  // namespace vllm_metrics::inline v0
