#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "vllm_metrics/export.h"
#include "vllm_metrics/stats/kv_cache_stats.h"

namespace vllm_metrics::inline v0 {

struct KvResidencySamplerOptions {
  // Blocks of the pool, 1 to 2^32 - 1; their ids are 0 to num_blocks - 1.
  std::int64_t num_blocks = 0;

  // The share of allocations that is followed, above 0 and at most 1. Raise it
  // when evictions are rare and the histograms stay empty.
  double sample_rate = 0.01;

  // Where the choice of blocks starts. The same seed makes the same choice.
  std::uint64_t seed = 0;

  // For tests and for engines with a source of their own: uniform in [0, 1),
  // asked at every allocation, a block is sampled when it is below the rate.
  // Without it nothing is drawn until the next block to sample is reached.
  std::function<double()> uniform = {};

  // Events kept for drain(), 1 to 2^24. More evictions than that between two
  // drains are counted, see num_dropped_events(), and not kept.
  std::int64_t max_pending_events = 16384;
};

struct SchedulerStats;

// Follows a sample of the blocks of a KV cache from allocation to eviction: how
// long they live, how long they lay idle, how often they were used again. The
// block pool calls the hooks; each step drains the events into its statistics:
//
//   sampler->on_evicted(block, now_ns);    // taken for reuse
//   sampler->on_allocated(block, now_ns);
//   sampler->on_accessed(block, now_ns);   // a prefix cache hit
//   sampler->drain(scheduler_stats);
//
// Time: nanoseconds of any one monotonic clock. A clock that falls gives
// negative durations, which the loggers take as 0 and count.
// Cost: a hook of a block that is not sampled tests one bit, or counts down to
// the next block to sample.
// Memory: one bit for each block of the pool, 48 bytes for each place in a
// table of the sampled blocks (a power of two, at most three quarters full),
// and the pending events. No allocation once these have grown.
// Thread-safety: none; it belongs to the thread of the block pool.
// Errors: create() only. Blocks that are not sampled or not of the pool are
// ignored.
// Definition: vLLM KVCacheMetricsCollector. vLLM v1/core/kv_cache_metrics.py.
class VLLM_METRICS_EXPORT KvResidencySampler {
 public:
  using Options = KvResidencySamplerOptions;

  // Empty for an option out of range; `error`, unless null, then gets its
  // name, its value and what is allowed.
  [[nodiscard]] static std::optional<KvResidencySampler> create(
      Options options, std::string* error = nullptr);

  // The block is handed out for new content. One that is sampled already
  // starts anew, if this allocation is sampled as well. Not an access.
  void on_allocated(std::int64_t block, std::int64_t now_ns) {
    if (--allocations_until_draw_ == 0) draw(block, now_ns);
  }

  // The block's content is used again.
  void on_accessed(std::int64_t block, std::int64_t now_ns) noexcept {
    if (is_sampled(block)) access(block, now_ns);
  }

  // The block's content is given up: an event, if the block is sampled.
  void on_evicted(std::int64_t block, std::int64_t now_ns) noexcept {
    if (is_sampled(block)) evict(block, now_ns);
  }

  // The whole cache is emptied: forgets the blocks and the pending events.
  void reset() noexcept;

  // Replaces the step's events by the pending ones, and tells how many were
  // lost since the last such call: the page shows it.
  void drain(SchedulerStats& step);

  // Moves the pending events to the end of `events`.
  void drain(std::vector<KvCacheEvictionEvent>& events);

  bool is_sampled(std::int64_t block) const noexcept {
    const auto id = static_cast<std::uint64_t>(block);
    return id < num_blocks_ && ((bits_[id / 64] >> (id % 64)) & 1) != 0;
  }

  // Blocks that are being followed now.
  std::size_t num_sampled_blocks() const noexcept { return num_sampled_; }

  // Events lost since construction, because drain() was not called in time.
  std::uint64_t num_dropped_events() const noexcept { return num_dropped_; }

 private:
  static constexpr std::size_t kHistory = 4;

  struct SampledBlock {
    std::uint32_t block = 0;
    std::uint32_t num_accesses = 0;  // 0 to 2 * kHistory - 1, see access()
    std::int64_t birth_ns = 0;
    std::int64_t access_ns[kHistory] = {};  // a ring; the n-th at n % kHistory
  };

  explicit KvResidencySampler(Options options);
  double next_uniform();
  std::uint64_t next_gap();
  void draw(std::int64_t block, std::int64_t now_ns);
  void follow(std::uint32_t block, std::int64_t now_ns);
  void access(std::int64_t block, std::int64_t now_ns) noexcept;
  void evict(std::int64_t block, std::int64_t now_ns) noexcept;
  void add_event(const SampledBlock& sampled, std::int64_t now_ns) noexcept;
  void grow();
  std::size_t home_of(std::uint32_t block) const noexcept;
  std::size_t place_of(std::uint32_t block) const noexcept;
  void remove(std::size_t place) noexcept;
  bool in_use(std::size_t place) const noexcept {
    return table_[place].block != kNoBlock;
  }

  static constexpr std::uint32_t kNoBlock = UINT32_MAX;

  std::vector<std::uint64_t> bits_;  // one per block of the pool: sampled
  std::uint64_t num_blocks_;
  std::uint64_t allocations_until_draw_ = 1;
  double sample_rate_;
  std::uint64_t random_state_;
  std::function<double()> uniform_;
  std::vector<SampledBlock> table_;  // open addressing, linear probing
  std::size_t num_sampled_ = 0;
  std::vector<KvCacheEvictionEvent> pending_;
  std::size_t max_pending_;
  std::uint64_t num_dropped_ = 0;
  std::uint64_t num_dropped_told_ = 0;  // of them, by drain()
};

}  // namespace vllm_metrics::inline v0
