#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "src/tools/sim/request.h"
#include "vllm_metrics/stats/kv_cache_stats.h"
#include "vllm_metrics/stats/kv_residency_sampler.h"

namespace vllm_metrics::sim {

// The blocks of one engine's KV cache: handed out, shared between requests
// with the same prefix, kept for reuse once free, and reused oldest first.
//
// A block is in use while a request holds it. A free block keeps its content,
// and can be found by its hash, until it is handed out for something else.
class KvBlockPool {
 public:
  static constexpr std::int64_t kUnlimited = 0;

  // `num_blocks`: kUnlimited, or 1 to 2^32 - 2.
  explicit KvBlockPool(std::int64_t num_blocks);

  // Follows a sample of the blocks from here on; their times are those of
  // set_now().
  void sample(KvResidencySampler sampler) { sampler_ = std::move(sampler); }
  void set_now(Ticks now);

  // From here on, the contents that can be found no more are added there.
  void keep_evicted(std::vector<std::uint64_t>* hashes) { evicted_ = hashes; }

  // Moves what sampled blocks went through to the end of `events`.
  void drain(std::vector<KvCacheEvictionEvent>& events);

  bool unlimited() const { return num_blocks_ == kUnlimited; }
  std::int64_t num_blocks() const { return num_blocks_; }
  std::int64_t num_used() const { return num_used_; }

  // Fraction in use, 0..1; 0 for an unlimited pool.
  double usage() const;

  // Whether `n` more blocks can be taken now.
  bool can_take(std::int64_t n) const {
    return unlimited() || n <= num_blocks_ - num_used_;
  }

  // A block for new content. Needs can_take(1).
  BlockId take();

  // The block with this content, in use or free.
  std::optional<BlockId> find(std::uint64_t hash) const;
  bool is_free(BlockId id) const { return blocks_[id].users == 0; }

  // One more request uses a block that was found.
  void share(BlockId id);

  // The block, in use, has this content now. When another one already has it,
  // that one stays the one that is found.
  void make_findable(BlockId id, std::uint64_t hash);

  // One request less uses the block.
  void release(BlockId id);

 private:
  static constexpr BlockId kNone = UINT32_MAX;
  struct Block {
    std::uint64_t hash = 0;
    std::uint32_t users = 0;
    bool findable = false;
    BlockId before = kNone;  // neighbours in the list of free blocks
    BlockId after = kNone;
  };

  void add_block();
  void link_first(BlockId id);  // next to be taken
  void link_last(BlockId id);
  void unlink(BlockId id);

  std::int64_t num_blocks_;
  std::int64_t num_used_ = 0;
  std::vector<Block> blocks_;
  BlockId first_free_ = kNone;
  BlockId last_free_ = kNone;
  absl::flat_hash_map<std::uint64_t, BlockId> by_hash_;
  std::optional<KvResidencySampler> sampler_;
  std::int64_t now_ns_ = 0;
  std::vector<std::uint64_t>* evicted_ = nullptr;
};

}  // namespace vllm_metrics::sim
