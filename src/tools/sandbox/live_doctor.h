#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "src/tools/sandbox/controls.h"
#include "vllm_metrics/exposition/text_format.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics::sandbox {

// What vllm-metrics-doctor says of the page now against one some virtual
// seconds ago, since the latest change.
//
// Thread-safety: one thread.
class LiveDoctor {
 public:
  explicit LiveDoctor(std::shared_ptr<Registry> registry)
      : registry_(std::move(registry)) {}

  // `models`, as `vllm-metrics-doctor --json` has them, and `seconds` between
  // the pages; no models until there are enough. `revision` tells that
  // something changed.
  Json report(std::uint64_t revision);

 private:
  struct Moment {
    double seconds = 0.0;  // virtual
    std::string text;
  };

  Json compare(const Moment& before, const Moment& after) const;

  std::shared_ptr<Registry> registry_;
  TextFormat format_;
  std::uint64_t revision_ = 0;
  std::deque<Moment> moments_;
};

}  // namespace vllm_metrics::sandbox
