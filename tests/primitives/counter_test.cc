#include "vllm_metrics/primitives/counter.h"

#include <catch2/catch.hpp>
#include <concepts>
#include <cstdint>
#include <limits>
#include <thread>
#include <vector>

namespace vllm_metrics {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

template <class Number>
concept CanIncrement = requires(Counter& counter, Number n) {
  counter.inc(n);
};

TEST_CASE("Counter: starts at 0 and adds one unless told how many",
          "[primitives]") {
  Counter counter;
  CHECK(counter.value() == 0);
  counter.inc();
  CHECK(counter.value() == 1);
  counter.inc(41);
  CHECK(counter.value() == 42);
  counter.inc(0);
  CHECK(counter.value() == 42);
  CHECK(counter.rejected() == 0);
}

TEST_CASE("Counter: the largest increment is 2^63 - 1", "[primitives]") {
  Counter counter;
  counter.inc(Counter::kMaxIncrement);
  CHECK(counter.value() == 9223372036854775807U);
  CHECK(counter.rejected() == 0);
}

TEST_CASE(
    "Counter: a negative number that lost its sign adds nothing and is "
    "counted",
    "[primitives]") {
  const auto n = GENERATE(std::int64_t{-1}, std::int64_t{-16},
                          std::numeric_limits<std::int64_t>::min());
  Counter counter;
  counter.inc(7);
  counter.inc(static_cast<std::uint64_t>(n));
  CHECK(counter.value() == 7);
  CHECK(counter.rejected() == 1);
}

TEST_CASE("Counter: past 2^64 - 1 the value wraps", "[primitives]") {
  Counter counter;
  counter.inc(Counter::kMaxIncrement);
  counter.inc(Counter::kMaxIncrement);
  counter.inc(1);
  CHECK(counter.value() == kMax);
  counter.inc(5);
  CHECK(counter.value() == 4);
  CHECK(counter.rejected() == 0);
}

// inc(0.5) compiled and added 0.
TEST_CASE("Counter: takes whole numbers only", "[primitives]") {
  STATIC_REQUIRE(CanIncrement<int>);
  STATIC_REQUIRE(CanIncrement<std::uint64_t>);
  STATIC_REQUIRE_FALSE(CanIncrement<double>);
  STATIC_REQUIRE_FALSE(CanIncrement<float>);
}

TEST_CASE("Counter: four threads lose no increment",
          "[primitives][concurrent]") {
  constexpr int kThreads = 4;
  constexpr int kTimes = 20'000;
  Counter counter;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&counter] {
      for (int i = 0; i < kTimes; ++i) {
        counter.inc(3);
        counter.inc(kMax);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(counter.value() == 3U * kThreads * kTimes);
  CHECK(counter.rejected() == 1U * kThreads * kTimes);
}

}  // namespace
}  // namespace vllm_metrics
