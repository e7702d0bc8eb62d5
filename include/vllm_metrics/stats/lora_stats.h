#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "vllm_metrics/export.h"

namespace vllm_metrics::inline v0 {

struct SchedulerStats;

// How many requests of a LoRA adapter are in one state.
struct LoraAdapterCount {
  std::string_view name;  // points into the LoraRequestStates or to the caller
  std::int64_t num_requests = 0;
};

// Which LoRA adapters have live requests, and how many of them wait and run.
// The engine keeps one per engine index and points RequestStateStats::lora to
// it; IterationStats then keeps it up to date, and update() writes it into the
// scheduler's stats before each record().
//
// An adapter is listed from its first QUEUED event until its last request has
// ended, in the order of appearance; its counts may be 0.
//
// Thread-safety: none; belongs to the thread that fills IterationStats.
// Memory: names of adapters seen are reused, not freed.
// Definition: vLLM LoRARequestStates. vLLM v1/metrics/stats.py.
class VLLM_METRICS_EXPORT LoraRequestStates {
 public:
  // What this class keeps beside each request.
  enum class Phase : std::uint8_t { kNone, kWaiting, kRunning };

  // A request of adapter `name` goes from one phase to another; kNone is
  // "not yet" or "no more". Requests without an adapter (empty name) are
  // ignored.
  void move(std::string_view name, Phase from, Phase to);

  // Writes both lists of adapters; they point into this object until its next
  // move().
  void update(SchedulerStats& scheduler) const;

 private:
  struct Adapter {
    std::string name;
    std::int64_t waiting = 0;
    std::int64_t running = 0;
  };
  std::int64_t* count(Adapter& adapter, Phase phase);

  std::vector<Adapter> adapters_;  // live ones first, in order of appearance
  std::size_t live_ = 0;
};

}  // namespace vllm_metrics::inline v0
