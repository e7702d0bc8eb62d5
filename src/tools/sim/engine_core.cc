#include "src/tools/sim/engine_core.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <span>
#include <string>
#include <utility>

namespace vllm_metrics::sim {
namespace {

using EventType = EngineCoreEvent::Type;

constexpr double kPostSeconds = 0.0005;  // to hand a transfer to the link

}  // namespace

EngineCore::EngineCore(const EngineParameters& engine,
                       const SchedulerParameters& scheduler,
                       const StepCostModel& cost, std::uint64_t seed)
    : engine_(&engine),
      scheduler_(&scheduler),
      cost_model_(&cost),
      pool_(cost.num_gpu_blocks()),
      random_(seed) {
  if (engine.kv_cache_metrics && !pool_.unlimited()) {
    auto sampler = KvResidencySampler::create(
        {.num_blocks = pool_.num_blocks(),
         .sample_rate = engine.kv_cache_metrics_sample,
         .seed = seed});
    if (sampler.has_value()) pool_.sample(*std::move(sampler));
  }
  for (const KvOffload::Setup& setup :
       KvOffload::setups_of(engine, cost.kv_bytes_per_block())) {
    offloads_.emplace_back(setup);
  }
  if (!offloads_.empty()) pool_.keep_evicted(&evicted_);
  if (engine.speculative_tokens > 0) {
    drafts_.emplace().num_spec_tokens = engine.speculative_tokens;
  }
}

bool EngineCore::fits(const RequestSpec& spec) const {
  const std::int64_t length = spec.prompt_tokens + spec.output_tokens;
  if (length > engine_->max_model_len) return false;
  // The last token is never read back, so it needs no room.
  return pool_.unlimited() || blocks_for(length - 1) <= pool_.num_blocks();
}

bool EngineCore::add_request(std::unique_ptr<Request> request, Ticks now) {
  if (!fits(request->spec)) return false;
  any_patience_ |= request->spec.give_up != kNever;
  request->events.push_back({EventType::kQueued, to_seconds(now)});
  waiting_.push_back(std::move(request));
  return true;
}

std::int64_t EngineCore::max_running() const {
  const std::int64_t cap = scheduler_->max_num_active_seqs;
  return cap > 0 ? std::min(cap, scheduler_->max_num_seqs)
                 : scheduler_->max_num_seqs;
}

Ticks EngineCore::begin_step(Ticks now) {
  assert(has_requests());
  finished_.clear();
  outputs_.clear();
  scheduled_.clear();
  details_ = {.iteration_index = num_steps_++};
  preempted_ = false;
  reported_ = false;
  budget_ = scheduler_->max_num_batched_tokens;
  pool_.set_now(now);
  for (KvOffload& offload : offloads_) offload.set_now(now);
  take_arrived_prompts(now);
  schedule_running(now);
  // A request that was just pushed out must not take what it had to give.
  if (!preempted_ || scheduled_.empty()) schedule_waiting(now);
  store_evicted();
  if (scheduled_.empty()) {
    // Each request fits the cache on its own, so the one admitted first always
    // gets on, however small the pool, unless prompts on their way hold it.
    assert(!fetching_.empty());
    cost_ = {};
    return std::max(now + 1, fetching_.front()->kv_arrival);
  }
  cost_ = cost_model_->cost_of(scheduled_);
  return now + std::max<Ticks>(1, to_ticks(cost_.duration));
}

// Prompt tokens that fit the step, or the one that was generated last.
std::int64_t EngineCore::chunk_of(const Request& request) const {
  std::int64_t n = request.num_tokens() - request.num_computed_tokens;
  const std::int64_t threshold = scheduler_->long_prefill_token_threshold;
  if (threshold > 0) n = std::min(n, threshold);
  return std::min(n, budget_);
}

// Nothing is drafted past the request's end, which it must fit the cache for.
std::int64_t EngineCore::drafts_for(const Request& request) const {
  if (engine_->speculative_tokens == 0 || request.num_output_tokens == 0 ||
      request.num_tokens() - request.num_computed_tokens != 1) {
    return 0;
  }
  return std::min({engine_->speculative_tokens, budget_ - 1,
                   request.spec.output_tokens - request.num_output_tokens - 1});
}

void EngineCore::schedule_running(Ticks now) {
  for (const auto& request : running_) request->num_scheduled_tokens = 0;
  for (std::size_t i = 0; i < running_.size() && budget_ > 0; ++i) {
    Request& request = *running_[i];
    request.num_drafted_tokens = drafts_for(request);
    const std::int64_t n = chunk_of(request) + request.num_drafted_tokens;
    if (!make_room(request, request.num_computed_tokens + n, now)) return;
    schedule_tokens(request, n);
  }
}

void EngineCore::take_blocks(Request& request, std::int64_t num_tokens) {
  while (std::ssize(request.blocks) < blocks_for(num_tokens)) {
    request.blocks.push_back(pool_.take());
  }
}

// Takes blocks for the first `num_tokens` tokens of a running request; false
// when it had to be preempted itself. Whoever is preempted was admitted last,
// so has not been scheduled in this step yet.
bool EngineCore::make_room(Request& request, std::int64_t num_tokens,
                           Ticks now) {
  const std::int64_t needed =
      blocks_for(num_tokens) - std::ssize(request.blocks);
  while (!pool_.can_take(needed)) {
    const bool itself = running_.back().get() == &request;
    preempt_last(now);
    if (itself) return false;
  }
  take_blocks(request, num_tokens);
  return true;
}

void EngineCore::schedule_waiting(Ticks now) {
  while (budget_ > 0 && num_running() < max_running()) {
    if (!fetched_.empty()) {
      schedule_fetched(now);
      continue;
    }
    if (waiting_.empty()) return;
    const Admission admission = admit(*waiting_.front(), now);
    if (admission == Admission::kNoRoom) return;
    auto request = std::move(waiting_.front());
    waiting_.pop_front();
    if (admission == Admission::kRunning) {
      running_.push_back(std::move(request));
    } else {
      const auto later = std::upper_bound(
          fetching_.begin(), fetching_.end(), request->kv_arrival,
          [](Ticks at, const auto& other) { return at < other->kv_arrival; });
      fetching_.insert(later, std::move(request));
    }
  }
}

// Of a prompt that was computed elsewhere only the last token is left. Blocks
// for all of it were taken when it was admitted.
void EngineCore::schedule_fetched(Ticks now) {
  Request& request = *fetched_.front();
  request.num_computed_tokens = request.num_arriving_tokens;
  request.events.push_back({EventType::kScheduled, to_seconds(now)});
  schedule_tokens(request, chunk_of(request));
  running_.push_back(std::move(fetched_.front()));
  fetched_.pop_front();
}

// No room: the blocks do not suffice for all its tokens so far. They are not
// set aside: only those of this step's chunk are taken.
EngineCore::Admission EngineCore::admit(Request& request, Ticks now) {
  look_up_prefix(request);
  const std::int64_t num_found = std::ssize(match_.blocks);
  const std::int64_t num_missing = blocks_for(request.num_tokens()) - num_found;
  if (!pool_.can_take(num_missing + match_.num_free)) return Admission::kNoRoom;

  for (const BlockId block : match_.blocks) pool_.share(block);
  request.blocks.assign(match_.blocks.begin(), match_.blocks.end());
  request.num_findable_blocks = request.blocks.size();
  request.num_computed_tokens = num_found * engine_->block_size;
  if (engine_->enable_prefix_caching) {
    lookups_.record(request.num_tokens(), request.num_computed_tokens,
                    request.num_preemptions > 0);
  }
  const bool first = !request.prefill_stats.has_value();
  if (first) {
    request.prefill_stats =
        PrefillStats{.num_prompt_tokens = request.spec.prompt_tokens,
                     .num_local_cached_tokens = request.num_computed_tokens};
  }
  request.num_arriving_tokens = request.num_computed_tokens;
  request.kv_arrival = now;
  load_offloaded(request);
  const bool fetches = first && engine_->kv_transfer &&
                       request.num_tokens() - request.num_arriving_tokens > 1;
  if (fetches) fetch_prompt(request, now);
  const std::int64_t arriving =
      request.num_arriving_tokens - request.num_computed_tokens;
  if (fetches || !offloads_.empty()) {
    connector_lookups_.record(
        request.num_tokens() - request.num_computed_tokens, arriving,
        request.num_preemptions > 0);
  }
  if (first) request.prefill_stats->num_external_cached_tokens = arriving;
  if (arriving > 0) {
    take_blocks(request, request.num_tokens());
    return Admission::kFetching;
  }
  request.events.push_back({EventType::kScheduled, to_seconds(now)});
  const std::int64_t n = chunk_of(request);
  take_blocks(request, request.num_computed_tokens + n);
  schedule_tokens(request, n);
  return Admission::kRunning;
}

// The leading full blocks of the request that are in the prefix cache. At least
// one token is left to compute: the one whose logits give the next token.
void EngineCore::look_up_prefix(const Request& request) {
  match_.blocks.clear();
  match_.num_free = 0;
  if (!engine_->enable_prefix_caching) return;
  const std::int64_t size = engine_->block_size;
  const std::int64_t limit = (request.num_tokens() - 1) / size;
  for (std::int64_t i = 0; i < limit; ++i) {
    const auto block = pool_.find(request.block_hash(i, size));
    if (!block.has_value()) return;
    match_.blocks.push_back(*block);
    match_.num_free += pool_.is_free(*block) ? 1 : 0;
  }
}

// What follows the part in the prefix cache, from the first connector that has
// some of it. Again at least one token is left to compute.
void EngineCore::load_offloaded(Request& request) {
  if (offloads_.empty()) return;
  const std::int64_t size = engine_->block_size;
  wanted_.clear();
  for (std::int64_t i = std::ssize(request.blocks);
       i < (request.num_tokens() - 1) / size; ++i) {
    wanted_.push_back(request.block_hash(i, size));
  }
  for (KvOffload& offload : offloads_) {
    const std::size_t found = offload.look_up(wanted_);
    if (found == 0 || request.num_arriving_tokens > request.num_computed_tokens)
      continue;
    request.kv_arrival = offload.load(std::span(wanted_).first(found));
    request.num_arriving_tokens += static_cast<std::int64_t>(found) * size;
    take_blocks(request, request.num_arriving_tokens);
    if (request.num_preemptions == 0) {
      request.prefill_stats->num_host_cached_tokens =
          static_cast<std::int64_t>(found) * size;
    }
  }
}

// One transfer a step for each connector.
void EngineCore::store_evicted() {
  for (KvOffload& offload : offloads_) offload.store(evicted_);
  evicted_.clear();
}

void EngineCore::fetch_prompt(Request& request, Ticks now) {
  request.prefill_stats->num_p2p_cached_tokens =
      request.spec.prompt_tokens - 1 - request.num_arriving_tokens;
  request.num_arriving_tokens = request.spec.prompt_tokens - 1;
  const std::int64_t before = std::ssize(request.blocks);
  take_blocks(request, request.spec.prompt_tokens);
  const std::int64_t blocks = std::ssize(request.blocks) - before;
  const double bytes = static_cast<double>(blocks) *
                       cost_model_->kv_bytes_per_block() *
                       static_cast<double>(engine_->tensor_parallel_size);
  const double seconds = bytes / (1e9 * engine_->kv_transfer_bandwidth);
  const Ticks begin = std::max(link_free_, now + to_ticks(kPostSeconds));
  link_free_ = begin + std::max<Ticks>(1, to_ticks(seconds));
  request.kv_arrival = std::max(request.kv_arrival, link_free_);
  // A descriptor is a block's keys and values in one layer.
  transfers_.record_transfer(1e6 * to_seconds(link_free_ - now),
                             1e6 * kPostSeconds,
                             static_cast<std::int64_t>(bytes),
                             blocks * engine_->shape.num_hidden_layers);
}

void EngineCore::take_arrived_prompts(Ticks now) {
  while (!fetching_.empty() && fetching_.front()->kv_arrival <= now) {
    fetched_.push_back(std::move(fetching_.front()));
    fetching_.pop_front();
  }
}

// Blocks that this step fills can be found from here on, before they are
// computed. That is in order: a later request of the same step reads them after
// they are written, layer by layer. And without a threshold for long prompts no
// request can come upon a prompt that is only half scheduled: as long as there
// is one, it takes the whole budget, and nobody is admitted. So without a limit
// on blocks the hits are those of the requests' order alone, however the steps
// fall. What is drafted can be found once it is accepted.
void EngineCore::schedule_tokens(Request& request, std::int64_t n) {
  scheduled_.push_back({.num_scheduled_tokens = n,
                        .num_computed_tokens = request.num_computed_tokens,
                        .is_new = !request.was_scheduled});
  request.was_scheduled = true;
  const bool prompt = request.num_computed_tokens < request.spec.prompt_tokens;
  ++(prompt ? details_.num_ctx_requests : details_.num_generation_requests);
  (prompt ? details_.num_ctx_tokens : details_.num_generation_tokens) += n;
  request.num_scheduled_tokens = n;
  budget_ -= n;
  if (!engine_->enable_prefix_caching) return;
  const std::int64_t size = engine_->block_size;
  const auto full = static_cast<std::size_t>(
      (request.num_computed_tokens + n - request.num_drafted_tokens) / size);
  for (std::size_t& i = request.num_findable_blocks; i < full; ++i) {
    pool_.make_findable(request.blocks[i],
                        request.block_hash(static_cast<std::int64_t>(i), size));
  }
}

void EngineCore::preempt_last(Ticks now) {
  std::unique_ptr<Request> request = std::move(running_.back());
  running_.pop_back();
  release_blocks(*request);
  request->num_computed_tokens = 0;
  request->num_scheduled_tokens = 0;
  request->num_drafted_tokens = 0;
  ++request->num_preemptions;
  request->events.push_back({EventType::kPreempted, to_seconds(now)});
  waiting_.push_front(std::move(request));
  preempted_ = true;
}

// From the end, so that of what stays behind the tail is given up first: a
// prefix is of no use without its beginning.
void EngineCore::release_blocks(Request& request) {
  while (!request.blocks.empty()) {
    pool_.release(request.blocks.back());
    request.blocks.pop_back();
  }
  request.num_findable_blocks = 0;
}

std::int64_t EngineCore::draw_accepted(std::int64_t num_drafted) {
  std::int64_t accepted = 0;
  while (accepted < num_drafted &&
         random_.uniform() < scheduler_->acceptance_rate) {
    ++accepted;
  }
  if (num_drafted > 0) drafts_->observe_draft(num_drafted, accepted);
  return accepted;
}

void EngineCore::end_step() {
  bool any_finished = false;
  for (const auto& owner : running_) {
    Request& request = *owner;
    if (request.num_scheduled_tokens == 0) continue;
    const std::int64_t drafted = std::exchange(request.num_drafted_tokens, 0);
    request.num_computed_tokens += request.num_scheduled_tokens - drafted;
    if (request.num_computed_tokens < request.num_tokens()) continue;
    const std::int64_t accepted = draw_accepted(drafted);
    request.num_computed_tokens += accepted;
    request.num_output_tokens += 1 + accepted;
    const bool finished = request.is_finished();
    if (finished) release_blocks(request);
    any_finished |= finished;
    outputs_.push_back({&request, finished, 1 + accepted});
  }
  if (!any_finished) return;
  for (auto& request : running_) {
    if (request->is_finished()) finished_.push_back(std::move(request));
  }
  std::erase(running_, nullptr);
}

EngineCore::Requests EngineCore::take_abandoned(Ticks now) {
  Requests out;
  if (!any_patience_) return out;
  const auto take_from = [&](auto& queue) {
    const std::size_t before = out.size();
    for (auto& request : queue) {
      if (request->spec.give_up > now) continue;
      release_blocks(*request);
      out.push_back(std::move(request));
    }
    if (out.size() > before) std::erase(queue, nullptr);
  };
  take_from(running_);
  take_from(fetched_);
  take_from(fetching_);
  take_from(waiting_);
  return out;
}

EngineCore::Requests EngineCore::take_all() {
  Requests out;
  const auto take_from = [&](auto& queue) {
    std::move(queue.begin(), queue.end(), std::back_inserter(out));
    queue.clear();
  };
  take_from(running_);
  take_from(fetched_);
  take_from(fetching_);
  take_from(waiting_);
  std::sort(out.begin(), out.end(),
            [](const auto& a, const auto& b) { return a->id < b->id; });
  return out;
}

SchedulerStats& EngineCore::take_stats() {
  stats_.num_running_reqs = num_running();
  stats_.num_waiting_reqs = num_waiting() - num_deferred();
  stats_.num_skipped_waiting_reqs = num_deferred();
  stats_.kv_cache_usage = pool_.usage();
  stats_.prefix_cache_stats = std::exchange(lookups_, {});
  stats_.kv_cache_eviction_events.clear();
  pool_.drain(stats_.kv_cache_eviction_events);
  if (engine_->kv_transfer || !offloads_.empty()) take_connector_stats();
  if (drafts_.has_value()) {
    stats_.spec_decoding_stats = *drafts_;
    drafts_->reset();
  }
  stats_.perf_stats.reset();
  stats_.iteration_details.reset();
  stats_.cudagraph_stats.reset();
  const bool stepped = !std::exchange(reported_, true) && !scheduled_.empty();
  if (stepped) add_step_stats();
  return stats_;
}

void EngineCore::take_connector_stats() {
  stats_.connector_prefix_cache_stats = std::exchange(connector_lookups_, {});
  stats_.kv_fetch_stages = fetch_stages();
  connectors_.parts.clear();
  if (engine_->kv_transfer) {
    reported_transfers_.reset();
    std::swap(reported_transfers_, transfers_);
    connectors_.parts.push_back(&reported_transfers_);
  }
  for (KvOffload& offload : offloads_)
    connectors_.parts.push_back(&offload.take_stats());
  stats_.kv_connector_stats =
      connectors_.parts.size() == 1 ? connectors_.parts.front() : &connectors_;
}

// What was preempted is at the front of the queue, and computed here.
KvFetchStages EngineCore::fetch_stages() const {
  KvFetchStages stages;
  if (engine_->kv_transfer) {
    const auto fresh = std::find_if(
        waiting_.begin(), waiting_.end(),
        [](const auto& request) { return request->num_preemptions == 0; });
    stages.waiting_to_start = std::distance(fresh, waiting_.end());
  }
  stages.in_progress = std::ssize(fetching_);
  stages.completed_waiting = std::ssize(fetched_);
  return stages;
}

void EngineCore::add_step_stats() {
  if (engine_->enable_mfu_metrics) stats_.perf_stats = cost_.work;
  details_.elapsed_ms = 1e3 * cost_.duration;
  if (engine_->enable_logging_iteration_details) {
    stats_.iteration_details = details_;
  }
  if (engine_->cudagraph_metrics) {
    const bool decodes_only = details_.num_ctx_requests == 0;
    const std::int64_t tokens =
        details_.num_ctx_tokens + details_.num_generation_tokens;
    stats_.cudagraph_stats = engine_->enforce_eager
                                 ? CudaGraphStat{tokens, tokens, 0, "NONE"}
                                 : graphs_.stat_of(tokens, decodes_only);
  }
}

}  // namespace vllm_metrics::sim
