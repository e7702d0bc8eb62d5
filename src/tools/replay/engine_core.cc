#include "src/tools/replay/engine_core.h"

#include <string>
#include <utility>

namespace vllm_metrics::replay {
namespace {

// More evictions than this between two drains are an error.
constexpr std::int64_t kMaxPendingEvents = std::int64_t{1} << 20;

std::vector<LoraAdapterCount> views_of(
    const std::vector<AdapterCount>& adapters) {
  std::vector<LoraAdapterCount> views;
  views.reserve(adapters.size());
  for (const AdapterCount& adapter : adapters) {
    views.push_back({adapter.name, adapter.num_requests});
  }
  return views;
}

}  // namespace

absl::StatusOr<EngineCore> EngineCore::create(const TraceConfig& config) {
  EngineCore core;
  core.wants_breakdown_ = config.debug_mfu;
  if (!config.model.has_value()) return core;
  std::string error;
  core.model_ = PerfModel::create(*config.model, &error);
  if (!core.model_.has_value()) {
    return absl::InvalidArgumentError("model: " + error);
  }
  return core;
}

std::string_view EngineCore::warning() const {
  if (!model_.has_value()) return {};
  return model_->warning();
}

absl::Status EngineCore::apply(const KvBlockEvent& event, std::int64_t now_ns) {
  using Call = KvBlockEvent::Call;
  if (event.block < 0 || event.block >= kMaxBlocks) {
    return absl::InvalidArgumentError("block: " + std::to_string(event.block) +
                                      " is not allowed: 0 to " +
                                      std::to_string(kMaxBlocks - 1));
  }
  auto found = samplers_.find(event.engine);
  if (found == samplers_.end()) {
    auto made =
        KvResidencySampler::create({.num_blocks = kMaxBlocks,
                                    .sample_rate = 1.0,
                                    .max_pending_events = kMaxPendingEvents});
    found = samplers_.emplace(event.engine, *std::move(made)).first;
  }
  KvResidencySampler& sampler = found->second;
  switch (event.call) {
    case Call::kAllocated:
      sampler.on_allocated(event.block, now_ns);
      break;
    case Call::kAccessed:
      sampler.on_accessed(event.block, now_ns);
      break;
    case Call::kEvicted:
      sampler.on_evicted(event.block, now_ns);
      break;
    case Call::kReset:
      sampler.reset();
      break;
  }
  if (sampler.num_dropped_events() == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "block: more than " + std::to_string(kMaxPendingEvents) +
      " evictions of engine " + std::to_string(event.engine) +
      " without a step that drains them");
}

absl::StatusOr<SchedulerStats*> EngineCore::complete(
    const TraceScheduler& scheduler, int engine) {
  stats_ = scheduler.stats;
  stats_.waiting_lora_adapters = views_of(scheduler.waiting_lora_adapters);
  stats_.running_lora_adapters = views_of(scheduler.running_lora_adapters);
  if (stats_.cudagraph_stats.has_value()) {
    stats_.cudagraph_stats->runtime_mode = scheduler.runtime_mode;
  }
  if (scheduler.kv_connector_stats.has_value()) {
    stats_.kv_connector_stats = &*scheduler.kv_connector_stats;
  }
  if (scheduler.scheduled.has_value()) {
    const absl::Status status = estimate(*scheduler.scheduled);
    if (!status.ok()) return status;
  }
  const auto sampler = samplers_.find(engine);
  if (scheduler.kv_drain && sampler != samplers_.end()) {
    sampler->second.drain(stats_.kv_cache_eviction_events);
  }
  return &stats_;
}

absl::Status EngineCore::estimate(
    const std::vector<ScheduledRequest>& scheduled) {
  if (!model_.has_value()) {
    return absl::InvalidArgumentError(
        "scheduler.perf_stats: nothing to estimate \"new\" and \"cached\" "
        "from: the configuration has no \"model\"");
  }
  PerfContext context;
  for (const ScheduledRequest& request : scheduled) context.add(request);
  stats_.perf_stats = wants_breakdown_ ? model_->estimate(context, breakdown_)
                                       : model_->estimate(context);
  return absl::OkStatus();
}

}  // namespace vllm_metrics::replay
