#include "vllm_metrics/stats/lora_stats.h"

#include <algorithm>

#include "vllm_metrics/stats/scheduler_stats.h"

namespace vllm_metrics::inline v0 {

std::int64_t* LoraRequestStates::count(Adapter& adapter, Phase phase) {
  switch (phase) {
    case Phase::kWaiting:
      return &adapter.waiting;
    case Phase::kRunning:
      return &adapter.running;
    case Phase::kNone:
      break;
  }
  return nullptr;
}

void LoraRequestStates::move(std::string_view name, Phase from, Phase to) {
  if (name.empty() || from == to) return;
  const auto live_end = adapters_.begin() + static_cast<std::ptrdiff_t>(live_);
  auto adapter =
      std::find_if(adapters_.begin(), live_end,
                   [&](const Adapter& known) { return known.name == name; });
  if (adapter == live_end) {
    if (live_ == adapters_.size()) adapters_.emplace_back();
    adapter = adapters_.begin() + static_cast<std::ptrdiff_t>(live_++);
    adapter->name = name;
  }
  if (auto* left = count(*adapter, from)) --*left;
  if (auto* entered = count(*adapter, to)) ++*entered;
  if (adapter->waiting == 0 && adapter->running == 0) {
    // Behind the live ones, where its name's memory waits for the next.
    std::rotate(adapter, adapter + 1,
                adapters_.begin() + static_cast<std::ptrdiff_t>(live_--));
  }
}

void LoraRequestStates::update(SchedulerStats& scheduler) const {
  scheduler.waiting_lora_adapters.clear();
  scheduler.running_lora_adapters.clear();
  for (std::size_t i = 0; i < live_; ++i) {
    const Adapter& adapter = adapters_[i];
    scheduler.waiting_lora_adapters.push_back({adapter.name, adapter.waiting});
    scheduler.running_lora_adapters.push_back({adapter.name, adapter.running});
  }
}

}  // namespace vllm_metrics::inline v0
