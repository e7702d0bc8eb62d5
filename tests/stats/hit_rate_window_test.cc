#include "vllm_metrics/stats/hit_rate_window.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <deque>
#include <limits>
#include <random>

namespace vllm_metrics {
namespace {

CacheStats step(std::int64_t requests, std::int64_t queries,
                std::int64_t hits) {
  return {.requests = requests, .queries = queries, .hits = hits};
}

TEST_CASE("HitRateWindow: is empty at first, with a rate of 0", "[stats]") {
  const HitRateWindow window;
  CHECK(window.empty());
  CHECK(window.hit_rate() == 0.0);
}

TEST_CASE("HitRateWindow: the rate is hits by queries of all its steps",
          "[stats]") {
  HitRateWindow window;
  window.observe(step(1, 100, 50));
  CHECK(window.hit_rate() == 0.5);
  window.observe(step(2, 300, 250));
  CHECK(window.hit_rate() == 0.75);
  CHECK_FALSE(window.empty());
}

TEST_CASE("HitRateWindow: a step without requests adds nothing", "[stats]") {
  HitRateWindow window;
  window.observe(step(0, 100, 100));
  CHECK(window.empty());
  CHECK(window.hit_rate() == 0.0);
  window.observe(step(1, 10, 5));
  window.observe(step(0, 100, 100));
  window.observe(step(-1, 100, 100));
  CHECK(window.hit_rate() == 0.5);
}

TEST_CASE("HitRateWindow: a rate without queries is 0", "[stats]") {
  HitRateWindow window;
  window.observe(step(3, 0, 0));
  CHECK_FALSE(window.empty());
  CHECK(window.hit_rate() == 0.0);
}

TEST_CASE(
    "HitRateWindow: the oldest steps leave while there are over 1000 "
    "requests",
    "[stats]") {
  HitRateWindow window;
  window.observe(step(400, 100, 0));
  window.observe(step(600, 100, 100));
  CHECK(window.hit_rate() == 0.5);  // exactly 1000 stay
  window.observe(step(1, 300, 300));
  CHECK(window.hit_rate() == 1.0);
  window.observe(step(1000, 50, 0));
  CHECK(window.hit_rate() == 0.0);
}

TEST_CASE("HitRateWindow: one step over the limit stays until the next",
          "[stats]") {
  HitRateWindow window;
  window.observe(step(5000, 100, 25));
  CHECK(window.hit_rate() == 0.25);
  window.observe(step(0, 7, 7));
  CHECK(window.hit_rate() == 0.25);
  window.observe(step(1, 10, 10));
  CHECK(window.hit_rate() == 1.0);
  window.observe(step(1001, 10, 5));
  CHECK(window.hit_rate() == 0.5);
}

TEST_CASE("HitRateWindow: a reset empties it before the step is added",
          "[stats]") {
  HitRateWindow window;
  window.observe(step(10, 100, 0));
  CacheStats fresh = step(1, 10, 10);
  fresh.reset = true;
  window.observe(fresh);
  CHECK(window.hit_rate() == 1.0);
  CacheStats only_reset;
  only_reset.reset = true;
  window.observe(only_reset);
  CHECK(window.empty());
  CHECK(window.hit_rate() == 0.0);
  window.observe(step(1, 4, 1));
  CHECK(window.hit_rate() == 0.25);
}

TEST_CASE(
    "HitRateWindow: the prefix cache's repeats after a preemption do not "
    "count",
    "[stats]") {
  HitRateWindow window;
  PrefixCacheStats stats;
  stats.record(100, 40, false);
  stats.record(100, 100, true);
  window.observe(stats);
  CHECK(window.hit_rate() == 0.4);
}

TEST_CASE("HitRateWindow: over many steps it is the definition, step by step",
          "[stats]") {
  const std::int64_t limit = GENERATE(1, 2, 10, 1000);
  const std::int64_t largest = GENERATE(1, 3, 1500);
  HitRateWindow window(limit);
  std::deque<CacheStats> kept;
  CacheStats total;
  std::mt19937_64 random(static_cast<std::uint64_t>(limit * largest));
  for (int i = 0; i < 3000; ++i) {
    const auto requests = static_cast<std::int64_t>(
        random() % static_cast<std::uint64_t>(largest + 1));
    const auto queries = static_cast<std::int64_t>(random() % 100);
    CacheStats next = step(requests, queries, queries / 3);
    next.reset = random() % 500 == 0;
    window.observe(next);
    if (next.reset) {
      kept.clear();
      total = {};
    }
    if (requests > 0) {
      kept.push_back(next);
      total.requests += requests;
      total.queries += queries;
      total.hits += queries / 3;
      while (kept.size() > 1 && total.requests > limit) {
        total.requests -= kept.front().requests;
        total.queries -= kept.front().queries;
        total.hits -= kept.front().hits;
        kept.pop_front();
      }
    }
    const double expected = total.queries == 0
                                ? 0.0
                                : static_cast<double>(total.hits) /
                                      static_cast<double>(total.queries);
    if (window.hit_rate() != expected || window.empty() != kept.empty()) {
      FAIL("step " << i << ": rate " << window.hit_rate() << ", expected "
                   << expected);
    }
  }
}

TEST_CASE("HitRateWindow: a limit or a step that cannot be does no harm",
          "[stats]") {
  using Limits = std::numeric_limits<std::int64_t>;
  for (const std::int64_t limit :
       {Limits::min(), std::int64_t{-1}, std::int64_t{0}, Limits::max()}) {
    HitRateWindow window(limit);
    for (const std::int64_t n : {Limits::min(), Limits::max(), std::int64_t{4}})
      window.observe({.requests = 1, .queries = n, .hits = n});
    CHECK(window.hit_rate() == 1.0);
    window.observe({.requests = 1, .queries = 4});
    CHECK(window.hit_rate() ==
          (limit == Limits::max() ? Approx(1.0) : Approx(0.0)));
  }
}

}  // namespace
}  // namespace vllm_metrics
