#include "src/tools/sim/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

#include "src/tools/sim/random.h"
#include "vllm_metrics/loggers/multi_connector_metrics.h"
#include "vllm_metrics/loggers/nixl_connector_metrics.h"
#include "vllm_metrics/loggers/offloading_connector_metrics.h"
#include "vllm_metrics/loggers/simple_offload_connector_metrics.h"

namespace vllm_metrics::sim {
namespace {

// Indexes into StepMetrics::metrics.
constexpr std::size_t kArrived = 0;
constexpr std::size_t kRefused = 1;
constexpr std::size_t kFrontEndDelay = 2;

constexpr double kFrontEndSeconds = 0.001;  // tokenising, on the way in

// What an update of the weights consists of, in order.
struct OperationTime {
  EngineOperation operation;
  double seconds;  // beside the time of the weights
  double weights;  // seconds for each gigabyte of one GPU's
};
constexpr OperationTime kWeightUpdate[] = {
    {EngineOperation::kSleep, 0.05, 0.04},
    {EngineOperation::kReleaseKvCacheMemory, 0.02, 0.0},
    {EngineOperation::kWeightInit, 0.2, 0.0},
    {EngineOperation::kWeightStart, 0.005, 0.0},
    {EngineOperation::kWeightUpdate, 0.1, 0.1},
    {EngineOperation::kWeightFinish, 0.02, 0.0},
    {EngineOperation::kWake, 0.1, 0.02},
};

// As if its client were traced, and had drawn the ids.
TraceContext trace_of(std::uint64_t drawn) {
  Random random(drawn);
  const auto fill = [&random](auto& id) {
    std::ranges::generate(
        id, [&] { return static_cast<std::uint8_t>(random.next()); });
  };
  TraceContext trace;
  fill(trace.trace_id);
  fill(trace.span_id);
  trace.flags = 1;
  return trace;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Simulation>> Simulation::create(
    const SimOptions& options, std::unique_ptr<Workload> workload,
    Hooks hooks) {
  if (absl::Status status = validate(options.parameters); !status.ok()) {
    return status;
  }
  std::unique_ptr<Simulation> simulation(
      new Simulation(options, std::move(workload), std::move(hooks)));
  auto gauge = simulation->registry_->add_gauge(
      {.name = "vllm_metrics_sim_seconds",
       .help = "Virtual seconds since the start of the simulation.",
       .kind = MetricKind::kGauge});
  if (!gauge.ok()) return gauge.status();
  simulation->seconds_gauge_ = *std::move(gauge);
  absl::Status status = simulation->start_engines();
  if (!status.ok()) return status;
  return simulation;
}

Simulation::Simulation(const SimOptions& options,
                       std::unique_ptr<Workload> workload, Hooks hooks)
    : options_(options),
      parameters_(options.parameters),
      scenario_(find_scenario(options.scenario)),
      next_change_(scenario_ == nullptr ? kNever : scenario_->change_at),
      workload_(std::move(workload)),
      hooks_(std::move(hooks)),
      log_interval_(options.log_interval > 0.0
                        ? std::max<Ticks>(1, to_ticks(options.log_interval))
                        : kNever),
      next_log_(log_interval_),
      clock_(std::make_shared<VirtualClock>(
          options.begin ? to_ticks(*options.begin) : workload_->epoch())),
      registry_(hooks_.registry != nullptr ? hooks_.registry
                                           : Registry::create()) {}

Simulation::~Simulation() = default;

// Also when there are engines: these are gone then, with their families.
absl::Status Simulation::start_engines() {
  auto cost = StepCostModel::create(parameters_.engine);
  if (!cost.ok()) return cost.status();
  manager_.reset();
  devices_.reset();
  ranks_.clear();
  cost_.emplace(*std::move(cost));
  next_rank_ = 0;
  const std::int64_t engines = parameters_.engine.engines;
  for (int i = 0; i < static_cast<int>(engines); ++i) {
    const std::uint64_t seed =
        chain(options_.seed, static_cast<std::uint64_t>(i));
    ranks_.push_back(std::make_unique<Rank>(
        i, parameters_.engine, parameters_.scheduler, *cost_, seed));
  }
  auto manager = StatLoggerManager::create(logger_options());
  if (!manager.ok()) return manager.status();
  manager_ = *std::move(manager);
  auto devices = DeviceGauges::create(*registry_, *cost_, engines, now());
  if (!devices.ok()) return devices.status();
  devices_.emplace(*std::move(devices));
  manager_->log_engine_initialized();
  asleep_until_ = kNever;
  const double interval = parameters_.engine.weight_update_interval;
  next_weight_update_ = interval > 0.0 ? now() + to_ticks(interval) : kNever;
  return absl::OkStatus();
}

std::shared_ptr<const KvConnectorMetrics> Simulation::connector() const {
  const EngineParameters& engine = parameters_.engine;
  MultiConnectorMetrics::Connectors all;
  if (engine.kv_transfer) {
    all.push_back(std::make_shared<NixlConnectorMetrics>());
  }
  for (const KvOffload::Setup& setup :
       KvOffload::setups_of(engine, cost_->kv_bytes_per_block())) {
    if (setup.kind == KvOffload::Kind::kNative) {
      all.push_back(std::make_shared<OffloadingConnectorMetrics>(
          OffloadingSetup{.store_threshold = setup.store_threshold}));
    } else {
      all.push_back(
          std::make_shared<SimpleOffloadConnectorMetrics>(SimpleOffloadSetup{
              .lazy_offload = true, .capacity_blocks = setup.capacity}));
    }
  }
  if (all.size() > 1) return std::make_shared<MultiConnectorMetrics>(all);
  return all.empty() ? nullptr : all.front();
}

absl::Status Simulation::apply(const Parameters& parameters) {
  if (absl::Status status = validate(parameters); !status.ok()) return status;
  workload_->apply(parameters.workload, now());
  const bool same_engine = parameters.engine == parameters_.engine;
  parameters_ = parameters;
  if (same_engine) return absl::OkStatus();

  EngineCore::Requests requests;
  for (const auto& rank : ranks_) {
    std::move(rank->inbox.begin(), rank->inbox.end(),
              std::back_inserter(requests));
    EngineCore::Requests inside = rank->core.take_all();
    std::move(inside.begin(), inside.end(), std::back_inserter(requests));
  }
  std::sort(requests.begin(), requests.end(),
            [](const auto& a, const auto& b) { return a->id < b->id; });
  absl::Status status = start_engines();
  if (!status.ok()) return status;
  for (auto& request : requests) accept_request(std::move(request->spec));
  return absl::OkStatus();
}

StatLoggerOptions Simulation::logger_options() {
  const EngineParameters& engine = parameters_.engine;
  const std::int64_t blocks = cost_->num_gpu_blocks();
  const bool limited = blocks != KvBlockPool::kUnlimited;
  StatLoggerOptions out;
  out.model_name = options_.model_name;
  out.factories = hooks_.loggers;
  out.max_model_len = engine.max_model_len;
  out.engine_indexes.clear();
  for (int i = 0; i < static_cast<int>(engine.engines); ++i)
    out.engine_indexes.push_back(i);
  if (limited) out.num_gpu_blocks = blocks;
  out.cache_config = {
      {"block_size", fmt::format("{}", engine.block_size)},
      {"cache_dtype", engine.kv_cache_dtype},
      {"enable_prefix_caching",
       engine.enable_prefix_caching ? "True" : "False"},
      {"gpu_memory_utilization",
       fmt::format("{}", engine.gpu_memory_utilization)},
      {"num_gpu_blocks", limited ? fmt::format("{}", blocks) : "None"}};
  out.kv_cache_metrics = engine.kv_cache_metrics;
  if (engine.speculative_tokens > 0) {
    out.num_speculative_tokens = engine.speculative_tokens;
  }
  if (engine.lora_adapters > 0) out.max_loras = engine.lora_adapters;
  out.kv_connector = connector();
  if (engine.native_histograms) {
    // 2.2 % a bucket, from 1 ms to a minute and beyond.
    out.native_latency_histograms = {.schema = 5, .max_buckets = 640};
  }
  out.exemplars = engine.exemplars;
  if (engine.cudagraph_metrics) {
    const CudaGraphs graphs;
    out.cudagraph.emplace();
    out.cudagraph->mode = engine.enforce_eager ? "NONE" : "FULL_AND_PIECEWISE";
    if (!engine.enforce_eager) out.cudagraph->capture_sizes = graphs.sizes();
  }
  out.enable_mfu_metrics = engine.enable_mfu_metrics;
  out.compute_nans_in_logits = engine.compute_nans_in_logits;
  out.aggregate_engine_logging = options_.aggregate_engine_logging;
  out.wire_version = options_.wire_version;
  out.registry = registry_;
  out.clock = clock_;
  out.log_sink = hooks_.log_sink;
  out.step_metrics = own_metrics();
  return out;
}

// They lie in the bank of the step, so that on every page
//   running + waiting + finished + refused = arrived, and
//   end to end = front end delay + queue + prefill + decode.
StepMetrics Simulation::own_metrics() {
  StepMetrics out;
  out.metrics.resize(3);
  out.metrics[kArrived].family = {
      .name = "vllm_metrics_sim_requests_arrived",
      .help = "Requests that have reached the engine, refused ones too.",
      .kind = MetricKind::kCounter};
  out.metrics[kRefused].family = {
      .name = "vllm_metrics_sim_requests_refused",
      .help = "Requests too long for the model or for the whole KV cache.",
      .kind = MetricKind::kCounter};
  out.metrics[kFrontEndDelay].family = {
      .name = "vllm_metrics_sim_frontend_delay_seconds",
      .help = "From arrival to the engine's queue, of requests that finished.",
      .kind = MetricKind::kHistogram};
  out.metrics[kFrontEndDelay].buckets = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05,
                                         0.1,   0.2,   0.5,   1.0,  2.0,  5.0};
  out.write = [this](const StepRecord& step, StepWriter& writer) {
    const Rank& rank = *ranks_[static_cast<std::size_t>(step.engine_index)];
    writer.inc(kArrived, rank.arrived);
    writer.inc(kRefused, rank.refused);
    writer.observe(kFrontEndDelay, rank.front_end_delays);
  };
  return out;
}

Ticks Simulation::next_event() const {
  Ticks next = kNever;
  for (const auto& rank : ranks_) {
    next = std::min(next, rank->step_end);
    // What a restart left there.
    if (rank->step_end == kNever && !rank->inbox.empty())
      next = std::min(next, asleep_until_ == kNever ? now() : asleep_until_);
  }
  if (asleep_until_ != kNever) next = std::min(next, asleep_until_);
  const Ticks arrival = workload_->next_arrival();
  if (arrival != kNever) {
    next = std::min(next, arrival + to_ticks(kFrontEndSeconds));
  }
  // Log lines and changes alone keep nothing going.
  return next == kNever
             ? kNever
             : std::min({next, next_log_, next_change_, next_weight_update_});
}

void Simulation::run_event(Ticks now) {
  advance_to(now);
  // What else happens now is still the next event.
  if (now == next_log_) {
    manager_->log();
    next_log_ += log_interval_;
    return;
  }
  if (now == next_change_) {
    next_change_ = kNever;
    Parameters changed = parameters_;
    scenario_->change(changed);
    const absl::Status status = apply(changed);
    assert(status.ok());
    (void)status;
    return;
  }
  if (now == next_weight_update_) return begin_weight_update(now);
  if (now == asleep_until_) end_weight_update();
  for (const auto& rank : ranks_) {
    if (rank->step_end == now) end_step(*rank, now);
  }
  while (workload_->next_arrival() != kNever &&
         workload_->next_arrival() + to_ticks(kFrontEndSeconds) <= now) {
    accept_request(workload_->take());
  }
  if (asleep_until_ != kNever) return;
  for (const auto& rank : ranks_) {
    const bool has_work = !rank->inbox.empty() || rank->core.has_requests();
    if (rank->step_end == kNever && has_work) start_step(*rank, now);
  }
}

void Simulation::advance_to(Ticks now) {
  clock_->advance_to(now);
  (*seconds_gauge_)->set(to_seconds(now));
  devices_->advance_to(now);
}

// Steps under way go on when the engines are awake again.
void Simulation::begin_weight_update(Ticks now) {
  double seconds = 0.0;
  for (const OperationTime& part : kWeightUpdate) {
    seconds += part.seconds + part.weights * cost_->weight_bytes() / 1e9;
  }
  const Ticks pause = to_ticks(seconds);
  asleep_until_ = now + pause;
  next_weight_update_ =
      asleep_until_ + to_ticks(parameters_.engine.weight_update_interval);
  for (const auto& rank : ranks_) {
    if (rank->step_end != kNever) rank->step_end += pause;
  }
  manager_->record_sleep_state({.sleep = 1, .level = 1});
}

void Simulation::end_weight_update() {
  asleep_until_ = kNever;
  for (const OperationTime& part : kWeightUpdate) {
    manager_->record_operation(
        part.operation,
        part.seconds + part.weights * cost_->weight_bytes() / 1e9);
  }
  manager_->record_sleep_state({});
}

void Simulation::finish() {
  const bool incomplete = now() > next_log_ - log_interval_;
  if (log_interval_ != kNever && incomplete) manager_->log();
}

void Simulation::accept_request(RequestSpec spec) {
  Rank& rank = rank_for(spec);
  auto request = std::make_unique<Request>();
  request->id = num_requests_++;
  request->spec = std::move(spec);
  RequestStateStats& stats = request->stats;
  stats.request_id = fmt::format("{}", request->id);
  stats.arrival_time = clock_->wall_at(request->spec.arrival);
  stats.num_prompt_tokens = request->spec.prompt_tokens;
  stats.max_tokens_param = request->spec.max_tokens;
  const std::uint64_t drawn =
      chain(options_.seed, static_cast<std::uint64_t>(request->id));
  if (parameters_.engine.exemplars) stats.trace = trace_of(drawn);
  if (const auto adapters = parameters_.engine.lora_adapters; adapters > 0) {
    stats.lora_name =
        fmt::format("adapter-{}", drawn % static_cast<std::uint64_t>(adapters));
    stats.lora = &rank.lora;
  }
  rank.inbox.push_back(std::move(request));
}

Simulation::Rank& Simulation::rank_for(const RequestSpec& spec) {
  const std::string& routing = parameters_.workload.routing;
  if (routing == kSticky && (spec.client >= 0 || !spec.prefix.empty())) {
    const std::uint64_t text = spec.client >= 0
                                   ? static_cast<std::uint64_t>(spec.client)
                                   : mix(spec.prefix.front());
    return *ranks_[text % ranks_.size()];
  }
  if (routing == kRoundRobin) {
    Rank& rank = *ranks_[next_rank_];
    next_rank_ = (next_rank_ + 1) % ranks_.size();
    return rank;
  }
  return least_loaded_rank();
}

Simulation::Rank& Simulation::least_loaded_rank() {
  std::size_t best = next_rank_;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::size_t k = 0; k < ranks_.size(); ++k) {
    const std::size_t i = (next_rank_ + k) % ranks_.size();
    const Rank& rank = *ranks_[i];
    const std::int64_t load = rank.core.num_running() +
                              rank.core.num_waiting() + std::ssize(rank.inbox);
    if (load < least) {
      least = load;
      best = i;
    }
  }
  next_rank_ = (best + 1) % ranks_.size();
  return *ranks_[best];
}

// The engine looks into its inbox between two steps, as vLLM's does.
void Simulation::start_step(Rank& rank, Ticks now) {
  for (auto& request : rank.inbox) {
    ++rank.arrived;
    if (rank.core.fits(request->spec)) {
      rank.core.add_request(std::move(request), now);
    } else {
      ++rank.refused;
      workload_->ended(request->spec, now);
    }
  }
  rank.inbox.clear();
  if (rank.core.has_requests()) {
    rank.step_begin = now;
    rank.step_end = rank.core.begin_step(now);
  } else {
    record(rank, nullptr);  // all of them were refused
  }
}

void Simulation::end_step(Rank& rank, Ticks now) {
  rank.step_end = kNever;
  rank.core.end_step();
  if (const StepCost& cost = rank.core.cost(); cost.duration > 0.0) {
    devices_->add_step(static_cast<std::size_t>(rank.index), cost,
                       rank.step_begin, now);
  }
  IterationStats& iteration = rank.iteration;
  iteration.reset(clock_->wall());
  for (const EngineCore::Output& output : rank.core.outputs()) {
    add_output(rank, output, now);
  }
  const EngineCore::Requests abandoned = rank.core.take_abandoned(now);
  for (const auto& request : abandoned) {
    iteration.update_from_events(request->events, request->stats);
    request->events.clear();
    request->spec.finish_reason = FinishReason::kAbort;
    iteration.update_from_ended_request(FinishReason::kAbort, to_seconds(now),
                                        request->stats);
    end_request(rank, *request, now);
  }
  // vLLM has no iteration statistics for a step without outputs either.
  const bool any = !rank.core.outputs().empty() || !abandoned.empty();
  if (any) report_.add_outputs(iteration);
  record(rank, any ? &iteration : nullptr);
}

void Simulation::add_output(Rank& rank, const EngineCore::Output& output,
                            Ticks now) {
  Request& request = *output.request;
  EngineCoreOutput update;
  update.num_new_tokens = output.num_new_tokens;
  update.events = request.events;
  update.num_nans_in_logits = request.spec.corrupted ? 1 : 0;
  if (request.stats.is_prefilling) update.prefill_stats = request.prefill_stats;
  rank.iteration.update_from_output(update, to_seconds(now), request.stats);
  request.events.clear();
  if (!output.finished) return;
  rank.iteration.update_from_finished_request(request.spec.finish_reason,
                                              request.stats);
  end_request(rank, request, now);
}

void Simulation::end_request(Rank& rank, Request& request, Ticks now) {
  rank.front_end_delays.push_back(*request.stats.queued_ts -
                                  to_seconds(request.spec.arrival));
  report_.add_finished(request, now);
  if (hooks_.finished) hooks_.finished(rank.index, request);
  workload_->ended(request.spec, now);
}

void Simulation::record(Rank& rank, const IterationStats* iteration) {
  SchedulerStats& scheduler = rank.core.take_stats();
  if (parameters_.engine.lora_adapters > 0) rank.lora.update(scheduler);
  report_.add_step(scheduler);
  report_.add_arrivals(rank.arrived, rank.refused);
  const auto begin = std::chrono::steady_clock::now();
  manager_->record(&scheduler, iteration, nullptr, rank.index);
  record_seconds_ +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  rank.arrived = 0;
  rank.refused = 0;
  rank.front_end_delays.clear();
}

std::int64_t Simulation::num_running() const {
  std::int64_t sum = 0;
  for (const auto& rank : ranks_) sum += rank->core.num_running();
  return sum;
}

std::int64_t Simulation::num_waiting() const {
  std::int64_t sum = 0;
  for (const auto& rank : ranks_) sum += rank->core.num_waiting();
  return sum;
}

}  // namespace vllm_metrics::sim
