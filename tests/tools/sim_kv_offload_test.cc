#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "src/tools/sim/kv_offload.h"

namespace vllm_metrics::sim {
namespace {

using Hashes = std::vector<std::uint64_t>;
using Kind = KvOffload::Kind;

// A block takes a second each way.
KvOffload::Setup four_blocks(Kind kind = Kind::kNative) {
  return {.kind = kind,
          .capacity = 4,
          .bytes_per_block = 1e6,
          .bytes_per_second = 1e6};
}

const OffloadingStats& native(KvOffload& offload) {
  return dynamic_cast<const OffloadingStats&>(offload.take_stats());
}

const SimpleOffloadStats& simple(KvOffload& offload) {
  return dynamic_cast<const SimpleOffloadStats&>(offload.take_stats());
}

std::int64_t saved(const SimpleOffloadStats& stats, SaveOutcome outcome) {
  return stats.save_outcomes[static_cast<std::size_t>(outcome)];
}

TEST_CASE("KvOffload: a block is found once its store has ended", "[tools]") {
  KvOffload offload(four_blocks());
  offload.set_now(0);
  offload.store(Hashes{1, 2});
  CHECK(offload.look_up(Hashes{1, 2}) == 0);
  offload.set_now(to_ticks(2.0));
  CHECK(offload.look_up(Hashes{1, 2, 3}) == 2);
  // Not what stands behind a block that is missing.
  CHECK(offload.look_up(Hashes{3, 1}) == 0);
  const OffloadingStats& stats = native(offload);
  CHECK(stats.store.bytes == 2'000'000);
  CHECK(stats.store.time == 2.0);
  CHECK(stats.store.sizes.size() == 1);
  CHECK(stats.lookup_sync_delays.size() == 3);
}

TEST_CASE("KvOffload: each link carries one transfer after the other",
          "[tools]") {
  KvOffload offload(four_blocks());
  offload.store(Hashes{1, 2});
  offload.set_now(to_ticks(2.0));
  CHECK(offload.load(Hashes{1, 2}) == to_ticks(4.0));
  CHECK(offload.load(Hashes{1}) == to_ticks(5.0));
  offload.store(Hashes{3});
  const OffloadingStats& stats = native(offload);
  CHECK(stats.cpu_cache_write_usage == 0.25);
  CHECK(stats.cpu_cache_read_usage == 0.5);
  CHECK(stats.load.bytes == 3'000'000);
  offload.set_now(to_ticks(5.0));
  CHECK(native(offload).cpu_cache_read_usage == 0.0);
}

TEST_CASE("KvOffload: the block not used for longest is given up", "[tools]") {
  KvOffload offload(four_blocks());
  offload.store(Hashes{1, 2, 3, 4});
  offload.set_now(to_ticks(4.0));
  offload.load(Hashes{1});
  offload.set_now(to_ticks(5.0));
  offload.store(Hashes{5});
  offload.set_now(to_ticks(6.0));
  CHECK(offload.look_up(Hashes{1}) == 1);
  CHECK(offload.look_up(Hashes{2}) == 0);
  CHECK(offload.look_up(Hashes{5}) == 1);
}

TEST_CASE("KvOffload: what transfers hold is never given up", "[tools]") {
  KvOffload offload(four_blocks(Kind::kSimple));
  offload.store(Hashes{1, 2, 3, 4, 5});
  offload.store(Hashes{4});
  const SimpleOffloadStats& stats = simple(offload);
  CHECK(saved(stats, SaveOutcome::kDroppedCpuFull) == 1);
  CHECK(saved(stats, SaveOutcome::kSkippedInFlight) == 1);
  CHECK(saved(stats, SaveOutcome::kStored) == 0);
  CHECK(stats.used_blocks == 4);
  CHECK(stats.pending_store_blocks == 4);
  offload.set_now(to_ticks(4.0));
  offload.store(Hashes{4});
  offload.load(Hashes{1, 2});
  const SimpleOffloadStats& later = simple(offload);
  CHECK(saved(later, SaveOutcome::kStored) == 4);
  CHECK(saved(later, SaveOutcome::kSkippedAlreadyCached) == 1);
  CHECK(later.num_load_blocks_issued == 2);
  CHECK(later.num_load_blocks_completed == 0);
  CHECK(later.used_blocks == 2);
  offload.set_now(to_ticks(6.0));
  CHECK(simple(offload).num_load_blocks_completed == 2);
}

TEST_CASE("KvOffload: only what was asked for often enough is stored",
          "[tools]") {
  KvOffload::Setup setup = four_blocks();
  setup.store_threshold = 2;
  KvOffload offload(setup);
  offload.look_up(Hashes{1, 2});
  offload.look_up(Hashes{1});
  offload.store(Hashes{1, 2, 3});
  const OffloadingStats& stats = native(offload);
  CHECK(stats.num_stores_skipped == 2);
  CHECK(stats.store.bytes == 1'000'000);
}

TEST_CASE("KvOffload: a connector each, with the memory that was asked for",
          "[tools]") {
  EngineParameters engine;
  CHECK(KvOffload::setups_of(engine, 1e6).empty());
  engine.kv_offload = kOffloadBoth;
  engine.kv_offload_size = 2.0;
  engine.tensor_parallel_size = 2;
  engine.kv_offload_store_threshold = 3;
  const auto setups = KvOffload::setups_of(engine, 1e6);
  REQUIRE(setups.size() == 2);
  CHECK(setups[0].kind == Kind::kNative);
  CHECK(setups[1].kind == Kind::kSimple);
  CHECK(setups[0].capacity == 1000);
  CHECK(setups[0].store_threshold == 3);
  CHECK(setups[1].store_threshold == 0);
}

}  // namespace
}  // namespace vllm_metrics::sim
