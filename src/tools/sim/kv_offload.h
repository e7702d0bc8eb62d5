#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "src/tools/sim/parameters.h"
#include "src/tools/sim/virtual_time.h"
#include "vllm_metrics/stats/offloading_stats.h"
#include "vllm_metrics/stats/simple_offload_stats.h"

namespace vllm_metrics::sim {

// KV blocks that the GPU gave up, kept in the CPU's memory: found by their
// hash, the one not used for longest given up first. Stores and loads have a
// link each, first come, first served; blocks of a transfer under way stay.
class KvOffload {
 public:
  // Whose statistics it tells.
  enum class Kind { kNative, kSimple };

  struct Setup {
    Kind kind = Kind::kNative;
    std::int64_t capacity = 0;  // blocks
    double bytes_per_block = 0.0;
    double bytes_per_second = 0.0;  // each way
    std::int64_t store_threshold = 0;
  };
  explicit KvOffload(const Setup& setup) : setup_(setup) {}

  // One for each connector that the engine has.
  static std::vector<Setup> setups_of(const EngineParameters& engine,
                                      double kv_bytes_per_block);

  // Ends the transfers that are over.
  void set_now(Ticks now);

  // What the GPU gave up goes on its way, in one transfer.
  void store(std::span<const std::uint64_t> hashes);

  // How many of these, from the first on, can be loaded: each counts as asked
  // for.
  std::size_t look_up(std::span<const std::uint64_t> hashes);

  // Loads what look_up() found; returns when it is on the GPU.
  Ticks load(std::span<const std::uint64_t> hashes);

  // What happened since the last call. Valid until the next.
  const KvConnectorStats& take_stats();

 private:
  struct Entry {
    std::uint64_t hash = 0;
    std::int64_t transfers = 0;  // under way
    bool stored = false;
  };
  using Entries = std::list<Entry>;
  struct Transfer {
    Ticks end = 0;
    std::vector<Entries::iterator> blocks;
  };
  struct Link {
    Ticks free_at = 0;
    std::deque<Transfer> transfers;  // in order of their ends
  };

  bool make_room();
  void pin(Entries::iterator entry);
  void unpin(Entries::iterator entry);
  double send(Link& link, Transfer transfer);
  std::int64_t num_blocks_of(const Link& link) const;

  Setup setup_;
  Ticks now_ = 0;
  Entries idle_;    // oldest first
  Entries pinned_;  // of a transfer
  absl::flat_hash_map<std::uint64_t, Entries::iterator> by_hash_;
  absl::flat_hash_map<std::uint64_t, std::int64_t> asked_for_;
  Link stores_;
  Link loads_;
  OffloadingStats native_;
  OffloadingStats reported_native_;
  SimpleOffloadStats simple_;
  SimpleOffloadStats reported_simple_;
};

}  // namespace vllm_metrics::sim
