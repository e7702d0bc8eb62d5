#include "src/tools/sim/engine_core.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace vllm_metrics::sim {

using EventType = EngineCoreEvent::Type;

EngineCore::EngineCore(const Options& options,
                       const SchedulerParameters& parameters,
                       const Hardware& hardware)
    : parameters_(&parameters),
      hardware_(&hardware),
      block_size_(options.block_size),
      pool_(options.num_gpu_blocks) {}

bool EngineCore::fits(const RequestSpec& spec) const {
  const std::int64_t length = spec.prompt_tokens + spec.output_tokens;
  if (length > parameters_->max_model_len) return false;
  // The last token is never read back, so it needs no room.
  return pool_.unlimited() || blocks_for(length - 1) <= pool_.num_blocks();
}

bool EngineCore::add_request(std::unique_ptr<Request> request, Ticks now) {
  if (!fits(request->spec)) return false;
  request->events.push_back({EventType::kQueued, to_seconds(now)});
  waiting_.push_back(std::move(request));
  return true;
}

Ticks EngineCore::begin_step(Ticks now) {
  assert(has_requests());
  finished_.clear();
  outputs_.clear();
  shape_ = {};
  preempted_ = false;
  budget_ = parameters_->max_num_batched_tokens;
  schedule_running(now);
  // A request that was just pushed out must not take what it had to give.
  if (!preempted_) schedule_waiting(now);
  // Each request fits the cache on its own, so the one admitted first always
  // gets on: the run ends, however small the pool.
  assert(shape_.tokens > 0);
  return now + step_duration(*hardware_, shape_);
}

void EngineCore::schedule_running(Ticks now) {
  for (const auto& request : running_) request->num_scheduled_tokens = 0;
  for (std::size_t i = 0; i < running_.size() && budget_ > 0; ++i) {
    Request& request = *running_[i];
    const std::int64_t n =
        std::min(request.num_tokens() - request.num_computed_tokens, budget_);
    if (!make_room(request, request.num_computed_tokens + n, now)) return;
    schedule_tokens(request, n);
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
  for (std::int64_t i = 0; i < needed; ++i) {
    request.blocks.push_back(pool_.take());
  }
  return true;
}

void EngineCore::schedule_waiting(Ticks now) {
  while (budget_ > 0 && !waiting_.empty() &&
         num_running() < parameters_->max_num_seqs) {
    if (!admit(*waiting_.front(), now)) return;
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
}

// False when the blocks do not suffice for all its tokens so far. They are not
// set aside: only those of this step's chunk are taken.
bool EngineCore::admit(Request& request, Ticks now) {
  look_up_prefix(request);
  const std::int64_t num_found = std::ssize(match_.blocks);
  const std::int64_t num_missing = blocks_for(request.num_tokens()) - num_found;
  if (!pool_.can_take(num_missing + match_.num_free)) return false;

  for (const BlockId block : match_.blocks) pool_.share(block);
  request.blocks.assign(match_.blocks.begin(), match_.blocks.end());
  request.num_findable_blocks = request.blocks.size();
  request.num_computed_tokens = num_found * block_size_;
  if (parameters_->prefix_caching) {
    lookups_.record(request.num_tokens(), request.num_computed_tokens,
                    request.num_preemptions > 0);
  }
  if (!request.prefill_stats.has_value()) {
    request.prefill_stats =
        PrefillStats{.num_prompt_tokens = request.spec.prompt_tokens,
                     .num_local_cached_tokens = request.num_computed_tokens};
  }
  request.events.push_back({EventType::kScheduled, to_seconds(now)});

  const std::int64_t n =
      std::min(request.num_tokens() - request.num_computed_tokens, budget_);
  while (std::ssize(request.blocks) <
         blocks_for(request.num_computed_tokens + n)) {
    request.blocks.push_back(pool_.take());
  }
  schedule_tokens(request, n);
  return true;
}

// The leading full blocks of the request that are in the prefix cache. At least
// one token is left to compute: the one whose logits give the next token.
void EngineCore::look_up_prefix(const Request& request) {
  match_.blocks.clear();
  match_.num_free = 0;
  if (!parameters_->prefix_caching) return;
  const std::int64_t limit = (request.num_tokens() - 1) / block_size_;
  for (std::int64_t i = 0; i < limit; ++i) {
    const auto block = pool_.find(request.block_hash(i, block_size_));
    if (!block.has_value()) return;
    match_.blocks.push_back(*block);
    match_.num_free += pool_.is_free(*block) ? 1 : 0;
  }
}

// Blocks that this step fills can be found from here on, before they are
// computed. That is in order: a later request of the same step reads them after
// they are written, layer by layer. And no request can come upon a prompt that
// is only half scheduled: as long as there is one, it takes the whole budget,
// and nobody is admitted. So without a limit on blocks the hits are those of
// the requests' order alone, however the steps fall.
void EngineCore::schedule_tokens(Request& request, std::int64_t n) {
  shape_.add(n, request.num_computed_tokens);
  request.num_scheduled_tokens = n;
  budget_ -= n;
  if (!parameters_->prefix_caching) return;
  const auto full =
      static_cast<std::size_t>((request.num_computed_tokens + n) / block_size_);
  for (std::size_t& i = request.num_findable_blocks; i < full; ++i) {
    pool_.make_findable(
        request.blocks[i],
        request.block_hash(static_cast<std::int64_t>(i), block_size_));
  }
}

void EngineCore::preempt_last(Ticks now) {
  std::unique_ptr<Request> request = std::move(running_.back());
  running_.pop_back();
  release_blocks(*request);
  request->num_computed_tokens = 0;
  request->num_scheduled_tokens = 0;
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

void EngineCore::end_step() {
  bool any_finished = false;
  for (const auto& owner : running_) {
    Request& request = *owner;
    if (request.num_scheduled_tokens == 0) continue;
    request.num_computed_tokens += request.num_scheduled_tokens;
    if (request.num_computed_tokens < request.num_tokens()) continue;
    ++request.num_output_tokens;
    const bool finished = request.is_finished();
    if (finished) release_blocks(request);
    any_finished |= finished;
    outputs_.push_back({&request, finished});
  }
  if (!any_finished) return;
  for (auto& request : running_) {
    if (request->is_finished()) finished_.push_back(std::move(request));
  }
  std::erase(running_, nullptr);
}

const SchedulerStats& EngineCore::take_stats() {
  stats_.num_running_reqs = num_running();
  stats_.num_waiting_reqs = num_waiting();
  stats_.kv_cache_usage = pool_.usage();
  stats_.prefix_cache_stats = std::exchange(lookups_, {});
  return stats_;
}

}  // namespace vllm_metrics::sim
