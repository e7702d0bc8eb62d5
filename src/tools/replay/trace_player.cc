#include "src/tools/replay/trace_player.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "vllm_metrics/loggers/nixl_connector_metrics.h"
#include "vllm_metrics/loggers/options.h"

namespace vllm_metrics::replay {
namespace {

template <class T>
const T* pointer_to(const std::optional<T>& value) {
  return value.has_value() ? &*value : nullptr;
}

StatLoggerOptions options_from(const TraceConfig& config) {
  StatLoggerOptions options;
  options.model_name = config.model_name;
  options.max_model_len = config.max_model_len;
  options.engine_indexes = config.engine_indexes;
  options.cache_config = config.cache_config;
  options.num_gpu_blocks = config.num_gpu_blocks;
  options.compute_nans_in_logits = config.compute_nans_in_logits;
  options.default_loggers = config.logger != TextLogger::kNone;
  options.aggregate_engine_logging = config.logger == TextLogger::kAggregated;
  options.client_count = config.client_count;
  options.wire_version = config.profile;
  options.vllm_version = config.vllm_version;
  options.show_hidden_metrics_for_version =
      config.show_hidden_metrics_for_version;
  options.kv_cache_metrics = config.kv_cache_metrics;
  options.max_loras = config.max_loras;
  options.num_speculative_tokens = config.num_speculative_tokens;
  options.is_diffusion = config.is_diffusion;
  if (config.kv_connector == KvConnector::kNixl) {
    options.kv_connector = std::make_shared<NixlConnectorMetrics>();
  }
  options.enable_mfu_metrics = config.enable_mfu_metrics;
  // In vLLM an environment variable, which means nothing without the switch.
  options.debug_mfu_metrics = config.debug_mfu && config.enable_mfu_metrics;
  options.cudagraph = config.cudagraph;
  return options;
}

// Lists `added` behind what is in `adapters`; one that is there already gets
// the new count, as in a Python dict.
void add_adapters(const std::vector<LoraAdapterCount>& added,
                  std::vector<LoraAdapterCount>& adapters) {
  for (const LoraAdapterCount& adapter : added) {
    const auto known =
        std::ranges::find(adapters, adapter.name, &LoraAdapterCount::name);
    if (known != adapters.end()) {
      known->num_requests = adapter.num_requests;
    } else {
      adapters.push_back(adapter);
    }
  }
}

}  // namespace

void TraceClock::set(const ClockReading& reading) {
  wall_ = reading.wall.value_or(wall_);
  monotonic_ = reading.mono.value_or(monotonic_);
  mono_ns_ = reading.mono_ns.value_or(mono_ns_);
}

absl::StatusOr<std::unique_ptr<TracePlayer>> TracePlayer::create(
    const TraceConfig& config, const ClockReading& clocks,
    std::shared_ptr<LogSink> log_sink, std::shared_ptr<Registry> registry) {
  auto engine_core = EngineCore::create(config);
  if (!engine_core.ok()) return engine_core.status();
  std::unique_ptr<TracePlayer> player(new TracePlayer(*std::move(engine_core)));
  player->clock_->set(clocks);
  StatLoggerOptions options = options_from(config);
  options.clock = player->clock_;
  options.log_sink = std::move(log_sink);
  options.registry = std::move(registry);
  auto manager = StatLoggerManager::create(std::move(options));
  if (!manager.ok()) return manager.status();
  player->manager_ = *std::move(manager);
  return player;
}

absl::Status TracePlayer::play(const TraceEvent& event) {
  clock_->set(event.clocks);
  return std::visit([this](const auto& action) { return this->apply(action); },
                    event.action);
}

absl::Status TracePlayer::apply(const TraceConfig&) {
  return absl::InvalidArgumentError("op: \"config\" comes once");
}

absl::Status TracePlayer::apply(const InitEvent&) {
  manager_->log_engine_initialized();
  return absl::OkStatus();
}

absl::Status TracePlayer::apply(const RecordEvent& event) {
  SchedulerStats* scheduler = nullptr;
  if (event.scheduler.has_value()) {
    auto completed = engine_core_.complete(*event.scheduler, event.engine);
    if (!completed.ok()) return completed.status();
    scheduler = *completed;
  }
  manager_->record(scheduler, pointer_to(event.iteration),
                   pointer_to(event.mm_cache), event.engine);
  return absl::OkStatus();
}

absl::Status TracePlayer::apply(const SleepEvent& event) {
  manager_->record_sleep_state(event.state);
  return absl::OkStatus();
}

absl::Status TracePlayer::apply(const LogEvent&) {
  manager_->log();
  return absl::OkStatus();
}

absl::Status TracePlayer::apply(const TickEvent&) { return absl::OkStatus(); }

absl::Status TracePlayer::apply(const RequestEvent& event) {
  if (requests_.contains(event.id)) {
    return absl::InvalidArgumentError(
        "id: request \"" + event.id +
        "\" has not ended yet; an id may be used again after its end");
  }
  RequestStateStats request;
  request.arrival_time = event.arrival;
  request.num_prompt_tokens = event.prompt_len;
  request.max_tokens_param = event.max_tokens;
  request.lora_name = event.lora.value_or("");
  request.lora = &lora_states_;
  if (event.parent.has_value()) {
    auto parent = join(*event.parent);
    if (!parent.ok()) return parent.status();
    request.parent = *std::move(parent);
  }
  requests_.emplace(event.id, std::move(request));
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<ParentRequest>> TracePlayer::join(
    const ParentRef& parent) {
  OpenParent& open = parents_[parent.id];
  if (open.request == nullptr) {
    open.request = std::make_shared<ParentRequest>(parent.n);
  }
  if (open.request->n() != parent.n) {
    return absl::InvalidArgumentError(
        "parent[1]: " + std::to_string(parent.n) +
        " is not allowed: another child of \"" + parent.id +
        "\" said n = " + std::to_string(open.request->n()));
  }
  std::shared_ptr<ParentRequest> request = open.request;
  if (++open.children == parent.n) parents_.erase(parent.id);
  return request;
}

absl::Status TracePlayer::apply(const OutputEvent& event) {
  iteration_.reset(clock_->wall());
  for (const RequestOutput& output : event.outputs) {
    apply_output(output, event.ts);
  }
  SchedulerStats* scheduler = nullptr;
  if (event.scheduler.has_value()) {
    auto completed = engine_core_.complete(*event.scheduler, event.engine);
    if (!completed.ok()) return completed.status();
    scheduler = *completed;
    add_lora_states(*scheduler);
  }
  manager_->record(scheduler, &iteration_, pointer_to(event.mm_cache),
                   event.engine);
  return absl::OkStatus();
}

void TracePlayer::apply_output(const RequestOutput& output, double timestamp) {
  const auto found = requests_.find(output.id);
  if (found == requests_.end()) return;  // dropped, and the engine not told yet
  iteration_.update_from_output({.num_new_tokens = output.tokens,
                                 .events = output.events,
                                 .prefill_stats = output.prefill,
                                 .num_nans_in_logits = output.nans},
                                timestamp, found->second);
  if (!output.finish.has_value()) return;
  iteration_.update_from_finished_request(*output.finish, found->second);
  requests_.erase(found);
}

absl::Status TracePlayer::apply(const AbortEvent& event) {
  for (const std::string& id : event.ids) {
    const auto found = requests_.find(id);
    if (found == requests_.end()) continue;
    drop_request(found->second);
    requests_.erase(found);
  }
  return absl::OkStatus();
}

// vLLM's front end follows the adapters of all engines together.
void TracePlayer::add_lora_states(SchedulerStats& scheduler) {
  lora_states_.update(live_adapters_);
  add_adapters(live_adapters_.waiting_lora_adapters,
               scheduler.waiting_lora_adapters);
  add_adapters(live_adapters_.running_lora_adapters,
               scheduler.running_lora_adapters);
}

absl::Status TracePlayer::apply(const KvBlockEvent& event) {
  return engine_core_.apply(event, clock_->mono_ns());
}

absl::Status TracePlayer::apply(const SnapshotEvent&) {
  if (!snapshot_.has_value()) snapshot_.emplace();
  manager_->registry()->snapshot(*snapshot_);
  return absl::OkStatus();
}

}  // namespace vllm_metrics::replay
