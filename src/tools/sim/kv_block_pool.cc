#include "src/tools/sim/kv_block_pool.h"

#include <cassert>
#include <cmath>

namespace vllm_metrics::sim {

KvBlockPool::KvBlockPool(std::int64_t num_blocks) : num_blocks_(num_blocks) {
  blocks_.reserve(static_cast<std::size_t>(num_blocks));
  for (std::int64_t i = 0; i < num_blocks; ++i) add_block();
}

void KvBlockPool::set_now(Ticks now) {
  now_ns_ = std::llround(1e9 * to_seconds(now));
}

void KvBlockPool::drain(std::vector<KvCacheEvictionEvent>& events) {
  if (sampler_.has_value()) sampler_->drain(events);
}

double KvBlockPool::usage() const {
  if (unlimited()) return 0.0;
  return static_cast<double>(num_used_) / static_cast<double>(num_blocks_);
}

BlockId KvBlockPool::take() {
  assert(can_take(1));
  // Without a limit nothing that can still be found is ever given up.
  const bool nothing_to_reuse =
      first_free_ == kNone || blocks_[first_free_].findable;
  if (unlimited() && nothing_to_reuse) {
    add_block();
    link_first(static_cast<BlockId>(blocks_.size() - 1));
  }
  const BlockId id = first_free_;
  unlink(id);
  Block& block = blocks_[id];
  if (block.findable) {
    by_hash_.erase(block.hash);
    block.findable = false;
    if (evicted_ != nullptr) evicted_->push_back(block.hash);
  }
  block.users = 1;
  ++num_used_;
  if (sampler_.has_value()) {
    sampler_->on_evicted(id, now_ns_);
    sampler_->on_allocated(id, now_ns_);
  }
  return id;
}

std::optional<BlockId> KvBlockPool::find(std::uint64_t hash) const {
  const auto found = by_hash_.find(hash);
  if (found == by_hash_.end()) return std::nullopt;
  return found->second;
}

void KvBlockPool::share(BlockId id) {
  if (sampler_.has_value()) sampler_->on_accessed(id, now_ns_);
  if (blocks_[id].users++ > 0) return;
  unlink(id);
  ++num_used_;
}

void KvBlockPool::make_findable(BlockId id, std::uint64_t hash) {
  if (!by_hash_.try_emplace(hash, id).second) return;
  blocks_[id].hash = hash;
  blocks_[id].findable = true;
}

void KvBlockPool::release(BlockId id) {
  Block& block = blocks_[id];
  assert(block.users > 0);
  if (--block.users > 0) return;
  --num_used_;
  // What nobody can find is reused before what somebody may ask for.
  if (block.findable) {
    link_last(id);
  } else {
    link_first(id);
  }
}

void KvBlockPool::add_block() {
  blocks_.emplace_back();
  if (!unlimited()) link_last(static_cast<BlockId>(blocks_.size() - 1));
}

void KvBlockPool::link_first(BlockId id) {
  blocks_[id].before = kNone;
  blocks_[id].after = first_free_;
  (first_free_ == kNone ? last_free_ : blocks_[first_free_].before) = id;
  first_free_ = id;
}

void KvBlockPool::link_last(BlockId id) {
  blocks_[id].before = last_free_;
  blocks_[id].after = kNone;
  (last_free_ == kNone ? first_free_ : blocks_[last_free_].after) = id;
  last_free_ = id;
}

void KvBlockPool::unlink(BlockId id) {
  const Block& block = blocks_[id];
  (block.before == kNone ? first_free_ : blocks_[block.before].after) =
      block.after;
  (block.after == kNone ? last_free_ : blocks_[block.after].before) =
      block.before;
}

}  // namespace vllm_metrics::sim
