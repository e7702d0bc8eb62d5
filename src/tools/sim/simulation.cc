#include "src/tools/sim/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <utility>

namespace vllm_metrics::sim {
namespace {

// Indexes into StepMetrics::metrics.
constexpr std::size_t kArrived = 0;
constexpr std::size_t kRefused = 1;
constexpr std::size_t kFrontEndDelay = 2;

std::int64_t num_gpu_blocks(const SimOptions& options) {
  return options.num_gpu_blocks.value_or(
      options.hardware.num_gpu_blocks(options.block_size));
}

StatLoggerOptions logger_options(const SimOptions& options) {
  const std::int64_t blocks = num_gpu_blocks(options);
  const bool limited = blocks != KvBlockPool::kUnlimited;
  StatLoggerOptions out;
  out.model_name = options.model_name;
  out.max_model_len = options.scheduler.max_model_len;
  out.engine_indexes.clear();
  for (int i = 0; i < static_cast<int>(options.engines); ++i)
    out.engine_indexes.push_back(i);
  if (limited) out.num_gpu_blocks = blocks;
  out.cache_config = {
      {"block_size", fmt::format("{}", options.block_size)},
      {"cache_dtype", "auto"},
      {"enable_prefix_caching",
       options.scheduler.prefix_caching ? "True" : "False"},
      {"gpu_memory_utilization",
       fmt::format("{}", options.hardware.memory_fraction)},
      {"num_gpu_blocks", limited ? fmt::format("{}", blocks) : "None"}};
  out.aggregate_engine_logging = options.aggregate_engine_logging;
  out.wire_version = options.wire_version;
  return out;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Simulation>> Simulation::create(
    const SimOptions& options, std::unique_ptr<Workload> workload,
    Hooks hooks) {
  std::unique_ptr<Simulation> simulation(
      new Simulation(options, std::move(workload), std::move(hooks)));
  absl::Status status = simulation->start(options);
  if (!status.ok()) return status;
  return simulation;
}

Simulation::Simulation(const SimOptions& options,
                       std::unique_ptr<Workload> workload, Hooks hooks)
    : parameters_(options.scheduler),
      hardware_(options.hardware),
      workload_(std::move(workload)),
      hooks_(std::move(hooks)),
      kv_cache_limited_(num_gpu_blocks(options) != KvBlockPool::kUnlimited),
      front_end_delay_(to_ticks(options.hardware.front_end_delay)),
      log_interval_(options.log_interval > 0.0
                        ? std::max<Ticks>(1, to_ticks(options.log_interval))
                        : kNever),
      next_log_(log_interval_),
      clock_(std::make_shared<VirtualClock>(workload_->epoch())) {
  const EngineCore::Options engine = {
      .block_size = options.block_size,
      .num_gpu_blocks = num_gpu_blocks(options)};
  for (int i = 0; i < static_cast<int>(options.engines); ++i) {
    ranks_.push_back(
        std::make_unique<Rank>(i, EngineCore(engine, parameters_, hardware_)));
  }
}

Simulation::~Simulation() = default;

absl::Status Simulation::start(const SimOptions& options) {
  StatLoggerOptions logging = logger_options(options);
  logging.clock = clock_;
  logging.log_sink = hooks_.log_sink;
  logging.step_metrics = own_metrics();
  auto manager = StatLoggerManager::create(std::move(logging));
  if (!manager.ok()) return manager.status();
  manager_ = *std::move(manager);
  auto gauge = registry()->add_gauge(
      {.name = "vllm_metrics_sim_seconds",
       .help = "Virtual seconds since the start of the simulation.",
       .kind = MetricKind::kGauge});
  if (!gauge.ok()) return gauge.status();
  seconds_gauge_ = *std::move(gauge);
  manager_->log_engine_initialized();
  take_next_request();
  return absl::OkStatus();
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
  for (const auto& rank : ranks_) next = std::min(next, rank->step_end);
  if (next_request_ != nullptr) {
    next = std::min(next, next_request_->spec.arrival + front_end_delay_);
  }
  // Log lines alone keep nothing going.
  return next == kNever ? kNever : std::min(next, next_log_);
}

void Simulation::run_event(Ticks now) {
  advance_to(now);
  if (now == next_log_) {
    manager_->log();
    next_log_ += log_interval_;
    return;  // what else happens now is still the next event
  }
  for (const auto& rank : ranks_) {
    if (rank->step_end == now) end_step(*rank, now);
  }
  while (next_request_ != nullptr &&
         next_request_->spec.arrival + front_end_delay_ == now) {
    accept_request();
  }
  for (const auto& rank : ranks_) {
    const bool has_work = !rank->inbox.empty() || rank->core.has_requests();
    if (rank->step_end == kNever && has_work) start_step(*rank, now);
  }
}

void Simulation::advance_to(Ticks now) {
  clock_->advance_to(now);
  (*seconds_gauge_)->set(to_seconds(now));
}

void Simulation::finish() {
  const bool incomplete = now() > next_log_ - log_interval_;
  if (log_interval_ != kNever && incomplete) manager_->log();
}

void Simulation::take_next_request() {
  auto spec = workload_->next();
  next_request_.reset();
  if (!spec.has_value()) return;
  auto request = std::make_unique<Request>();
  request->id = num_requests_++;
  request->spec = *std::move(spec);
  request->stats.arrival_time = clock_->wall_at(request->spec.arrival);
  request->stats.num_prompt_tokens = request->spec.prompt_tokens;
  request->stats.max_tokens_param = request->spec.max_tokens;
  next_request_ = std::move(request);
}

void Simulation::accept_request() {
  least_loaded_rank().inbox.push_back(std::move(next_request_));
  take_next_request();
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
    if (!rank.core.add_request(std::move(request), now)) ++rank.refused;
  }
  rank.inbox.clear();
  if (rank.core.has_requests()) {
    rank.step_end = rank.core.begin_step(now);
  } else {
    record(rank, nullptr);  // all of them were refused
  }
}

void Simulation::end_step(Rank& rank, Ticks now) {
  rank.step_end = kNever;
  rank.core.end_step();
  IterationStats& iteration = rank.iteration;
  iteration.reset(clock_->wall());
  for (const EngineCore::Output& output : rank.core.outputs()) {
    Request& request = *output.request;
    EngineCoreOutput update;
    update.num_new_tokens = 1;
    update.events = request.events;
    if (request.stats.is_prefilling) {
      update.prefill_stats = request.prefill_stats;
    }
    iteration.update_from_output(update, to_seconds(now), request.stats);
    request.events.clear();
    if (!output.finished) continue;
    iteration.update_from_finished_request(request.spec.finish_reason,
                                           request.stats);
    rank.front_end_delays.push_back(*request.stats.queued_ts -
                                    to_seconds(request.spec.arrival));
    report_.add_finished(request);
    if (hooks_.finished) hooks_.finished(rank.index, request);
  }
  // vLLM has no iteration statistics for a step without outputs either.
  const bool any = !rank.core.outputs().empty();
  if (any) report_.add_outputs(iteration);
  record(rank, any ? &iteration : nullptr);
}

void Simulation::record(Rank& rank, const IterationStats* iteration) {
  const SchedulerStats& scheduler = rank.core.take_stats();
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
