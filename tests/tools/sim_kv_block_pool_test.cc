#include <catch2/catch.hpp>
#include <optional>
#include <vector>

#include "src/tools/sim/kv_block_pool.h"

namespace vllm_metrics::sim {
namespace {

// Takes a block for content `hash` and gives it back.
BlockId used_once(KvBlockPool& pool, std::uint64_t hash) {
  const BlockId id = pool.take();
  pool.make_findable(id, hash);
  pool.release(id);
  return id;
}

TEST_CASE("KvBlockPool: usage is the fraction of blocks in use", "[tools]") {
  KvBlockPool pool(4);
  CHECK(pool.usage() == 0.0);
  CHECK(pool.can_take(4));
  CHECK_FALSE(pool.can_take(5));
  const BlockId first = pool.take();
  pool.take();
  pool.take();
  CHECK(pool.usage() == 0.75);
  CHECK(pool.can_take(1));
  CHECK_FALSE(pool.can_take(2));
  pool.release(first);
  CHECK(pool.usage() == 0.5);
}

TEST_CASE("KvBlockPool: a free block is found until it is taken again",
          "[tools]") {
  KvBlockPool pool(1);
  const BlockId id = used_once(pool, 7);
  CHECK(pool.find(7) == id);
  CHECK(pool.is_free(id));
  CHECK(pool.take() == id);
  CHECK(pool.find(7) == std::nullopt);
}

TEST_CASE("KvBlockPool: the block that has been free longest is taken first",
          "[tools]") {
  KvBlockPool pool(3);
  const BlockId ids[] = {pool.take(), pool.take(), pool.take()};
  for (std::uint64_t i = 0; i < 3; ++i) pool.make_findable(ids[i], 100 + i);
  for (const int i : {1, 2, 0}) pool.release(ids[i]);
  SECTION("as they were released") {
    CHECK(pool.take() == ids[1]);
    CHECK(pool.take() == ids[2]);
    CHECK(pool.take() == ids[0]);
  }
  SECTION("used in between counts from its end") {
    pool.share(ids[1]);
    CHECK(pool.num_used() == 1);
    pool.release(ids[1]);
    CHECK(pool.take() == ids[2]);
    CHECK(pool.take() == ids[0]);
    CHECK(pool.take() == ids[1]);
  }
}

TEST_CASE("KvBlockPool: what nobody can find is taken before what can be",
          "[tools]") {
  KvBlockPool pool(2);
  const BlockId unfindable = pool.take();
  used_once(pool, 7);
  pool.release(unfindable);
  CHECK(pool.take() == unfindable);
  CHECK(pool.find(7).has_value());
}

TEST_CASE("KvBlockPool: a shared block is free when its last user is gone",
          "[tools]") {
  KvBlockPool pool(2);
  const BlockId id = pool.take();
  pool.make_findable(id, 7);
  pool.share(id);
  CHECK(pool.num_used() == 1);
  pool.release(id);
  CHECK_FALSE(pool.is_free(id));
  pool.release(id);
  CHECK(pool.is_free(id));
  CHECK(pool.num_used() == 0);
}

TEST_CASE("KvBlockPool: of two blocks with one content the first is found",
          "[tools]") {
  KvBlockPool pool(2);
  const BlockId first = pool.take();
  const BlockId second = pool.take();
  pool.make_findable(first, 7);
  pool.make_findable(second, 7);
  CHECK(pool.find(7) == first);
  // Giving up the second must not take the first out of the table.
  pool.release(second);
  CHECK(pool.take() == second);
  CHECK(pool.find(7) == first);
}

TEST_CASE("KvBlockPool: an unlimited pool never gives up what can be found",
          "[tools]") {
  KvBlockPool pool(KvBlockPool::kUnlimited);
  CHECK(pool.unlimited());
  CHECK(pool.can_take(1'000'000'000));
  for (std::uint64_t hash = 0; hash < 100; ++hash) used_once(pool, hash);
  for (std::uint64_t hash = 0; hash < 100; ++hash) {
    CHECK(pool.find(hash).has_value());
  }
  CHECK(pool.num_used() == 0);
  CHECK(pool.usage() == 0.0);
  // But it reuses the others.
  const BlockId id = pool.take();
  pool.release(id);
  CHECK(pool.take() == id);
}

}  // namespace
}  // namespace vllm_metrics::sim
