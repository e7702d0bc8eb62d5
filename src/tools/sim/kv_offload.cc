#include "src/tools/sim/kv_offload.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

namespace vllm_metrics::sim {
namespace {

// Hashes whose lookups are counted at once; then it begins anew.
constexpr std::size_t kMostCounted = 1 << 16;

constexpr double kLookupSeconds = 2e-6;  // the scheduler's, for each block

}  // namespace

std::vector<KvOffload::Setup> KvOffload::setups_of(
    const EngineParameters& engine, double kv_bytes_per_block) {
  std::vector<Setup> setups;
  Setup setup;
  setup.bytes_per_block =
      kv_bytes_per_block * static_cast<double>(engine.tensor_parallel_size);
  setup.bytes_per_second = 1e9 * engine.kv_offload_bandwidth;
  setup.capacity = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(1e9 * engine.kv_offload_size /
                                   setup.bytes_per_block));
  const bool both = engine.kv_offload == kOffloadBoth;
  if (both || engine.kv_offload == kOffloadNative) {
    setups.push_back(setup);
    setups.back().store_threshold = engine.kv_offload_store_threshold;
  }
  if (both || engine.kv_offload == kOffloadSimple) {
    setups.push_back(setup);
    setups.back().kind = Kind::kSimple;
  }
  return setups;
}

void KvOffload::set_now(Ticks now) {
  now_ = now;
  const auto end_of = [&](Link& link, auto ended) {
    while (!link.transfers.empty() && link.transfers.front().end <= now) {
      for (const auto entry : link.transfers.front().blocks) {
        ended(*entry);
        unpin(entry);
      }
      link.transfers.pop_front();
    }
  };
  end_of(stores_, [this](Entry& entry) {
    entry.stored = true;
    simple_.record_save(SaveOutcome::kStored);
  });
  end_of(loads_, [this](Entry&) { ++simple_.num_load_blocks_completed; });
}

void KvOffload::store(std::span<const std::uint64_t> hashes) {
  Transfer transfer;
  for (const std::uint64_t hash : hashes) {
    if (const auto known = by_hash_.find(hash); known != by_hash_.end()) {
      simple_.record_save(known->second->stored
                              ? SaveOutcome::kSkippedAlreadyCached
                              : SaveOutcome::kSkippedInFlight);
      continue;
    }
    const auto asked = asked_for_.find(hash);
    if (setup_.store_threshold > 1 &&
        (asked == asked_for_.end() || asked->second < setup_.store_threshold)) {
      ++native_.num_stores_skipped;
      continue;
    }
    if (!make_room()) {
      native_.record_allocation_failure();
      simple_.record_save(SaveOutcome::kDroppedCpuFull);
      continue;
    }
    const auto entry = idle_.insert(idle_.end(), Entry{.hash = hash});
    by_hash_.emplace(hash, entry);
    pin(entry);
    transfer.blocks.push_back(entry);
  }
  if (transfer.blocks.empty()) return;
  const double bytes =
      setup_.bytes_per_block * static_cast<double>(transfer.blocks.size());
  const double seconds = send(stores_, std::move(transfer));
  native_.record_store(static_cast<std::int64_t>(bytes), seconds);
}

std::size_t KvOffload::look_up(std::span<const std::uint64_t> hashes) {
  if (setup_.store_threshold > 1) {
    if (asked_for_.size() + hashes.size() > kMostCounted) asked_for_.clear();
    for (const std::uint64_t hash : hashes) ++asked_for_[hash];
  }
  std::size_t found = 0;
  for (const std::uint64_t hash : hashes) {
    const auto known = by_hash_.find(hash);
    if (known == by_hash_.end() || !known->second->stored) break;
    ++found;
  }
  native_.record_lookup(kLookupSeconds * static_cast<double>(1 + found));
  return found;
}

Ticks KvOffload::load(std::span<const std::uint64_t> hashes) {
  Transfer transfer;
  for (const std::uint64_t hash : hashes) {
    const auto known = by_hash_.find(hash);
    assert(known != by_hash_.end());
    pin(known->second);
    transfer.blocks.push_back(known->second);
  }
  const double bytes =
      setup_.bytes_per_block * static_cast<double>(hashes.size());
  const double seconds = send(loads_, std::move(transfer));
  native_.record_load(static_cast<std::int64_t>(bytes), seconds);
  simple_.num_load_blocks_issued += std::ssize(hashes);
  return loads_.free_at;
}

const KvConnectorStats& KvOffload::take_stats() {
  const auto capacity = static_cast<double>(setup_.capacity);
  const std::int64_t storing = num_blocks_of(stores_);
  if (setup_.kind == Kind::kSimple) {
    reported_simple_ = std::exchange(simple_, {});
    reported_simple_.used_blocks = std::ssize(pinned_);
    reported_simple_.pending_store_blocks = storing;
    native_.reset();
    return reported_simple_;
  }
  reported_native_.reset();
  std::swap(reported_native_, native_);
  reported_native_.cpu_cache_write_usage =
      static_cast<double>(storing) / capacity;
  reported_native_.cpu_cache_read_usage =
      static_cast<double>(std::ssize(pinned_) - storing) / capacity;
  simple_.reset();
  return reported_native_;
}

bool KvOffload::make_room() {
  if (std::ssize(by_hash_) < setup_.capacity) return true;
  if (idle_.empty()) return false;
  by_hash_.erase(idle_.front().hash);
  idle_.pop_front();
  return true;
}

void KvOffload::pin(Entries::iterator entry) {
  if (entry->transfers++ > 0) return;
  pinned_.splice(pinned_.end(), idle_, entry);
}

void KvOffload::unpin(Entries::iterator entry) {
  if (--entry->transfers > 0) return;
  idle_.splice(idle_.end(), pinned_, entry);
}

// Returns the seconds it takes, without what was before it on the link.
double KvOffload::send(Link& link, Transfer transfer) {
  const double seconds = setup_.bytes_per_block *
                         static_cast<double>(transfer.blocks.size()) /
                         setup_.bytes_per_second;
  link.free_at =
      std::max(link.free_at, now_) + std::max<Ticks>(1, to_ticks(seconds));
  transfer.end = link.free_at;
  link.transfers.push_back(std::move(transfer));
  return seconds;
}

std::int64_t KvOffload::num_blocks_of(const Link& link) const {
  std::int64_t sum = 0;
  for (const Transfer& transfer : link.transfers)
    sum += std::ssize(transfer.blocks);
  return sum;
}

}  // namespace vllm_metrics::sim
