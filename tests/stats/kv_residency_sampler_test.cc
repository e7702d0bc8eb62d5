#include "vllm_metrics/stats/kv_residency_sampler.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace vllm_metrics {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kSecond = 1'000'000'000;

KvResidencySampler made(KvResidencySamplerOptions options) {
  std::string error;
  auto sampler = KvResidencySampler::create(std::move(options), &error);
  INFO(error);
  REQUIRE(sampler.has_value());
  return *std::move(sampler);
}

// Follows every block.
KvResidencySampler made_for_all(std::int64_t num_blocks = 128) {
  return made({.num_blocks = num_blocks, .sample_rate = 1.0});
}

std::vector<KvCacheEvictionEvent> drained(KvResidencySampler& sampler) {
  std::vector<KvCacheEvictionEvent> events;
  sampler.drain(events);
  return events;
}

std::vector<double> gaps_of(const KvCacheEvictionEvent& event) {
  const auto gaps = event.reuse_gaps_seconds();
  return {gaps.begin(), gaps.end()};
}

std::string refusal(KvResidencySamplerOptions options) {
  std::string error = "none";
  REQUIRE_FALSE(KvResidencySampler::create(std::move(options), &error));
  return error;
}

TEST_CASE("KvResidencySampler: tells life, idle time and reuse of a block",
          "[stats]") {
  KvResidencySampler sampler = made_for_all();
  sampler.on_allocated(7, 10 * kSecond);
  SECTION("never accessed: idle since its birth") {
    sampler.on_evicted(7, 14 * kSecond);
    const auto events = drained(sampler);
    REQUIRE(events.size() == 1);
    CHECK(events[0].lifetime_seconds == 4.0);
    CHECK(events[0].idle_seconds == 4.0);
    CHECK(gaps_of(events[0]).empty());
  }
  SECTION("one access has no gap") {
    sampler.on_accessed(7, 11 * kSecond);
    sampler.on_evicted(7, 14 * kSecond);
    const auto events = drained(sampler);
    REQUIRE(events.size() == 1);
    CHECK(events[0].lifetime_seconds == 4.0);
    CHECK(events[0].idle_seconds == 3.0);
    CHECK(gaps_of(events[0]).empty());
  }
  SECTION("two accesses have one") {
    sampler.on_accessed(7, 11 * kSecond);
    sampler.on_accessed(7, 11 * kSecond + kSecond / 2);
    sampler.on_evicted(7, 14 * kSecond);
    CHECK(gaps_of(drained(sampler).at(0)) == std::vector<double>{0.5});
  }
  SECTION("of many accesses the last four count") {
    const int num_accesses = GENERATE(4, 5, 6, 7, 8, 9, 13, 40);
    // The n-th access is n * n seconds after the birth.
    for (int n = 1; n <= num_accesses; ++n) {
      sampler.on_accessed(7, (10 + n * n) * kSecond);
    }
    const int n = num_accesses;
    sampler.on_evicted(7, (10 + n * n + 2) * kSecond);
    const auto events = drained(sampler);
    REQUIRE(events.size() == 1);
    CAPTURE(num_accesses);
    CHECK(events[0].lifetime_seconds == n * n + 2);
    CHECK(events[0].idle_seconds == 2.0);
    CHECK(gaps_of(events[0]) ==
          std::vector<double>{2.0 * n - 5, 2.0 * n - 3, 2.0 * n - 1});
  }
}

TEST_CASE("KvResidencySampler: an allocation starts a block anew", "[stats]") {
  KvResidencySampler sampler = made_for_all();
  sampler.on_allocated(3, 0);
  sampler.on_accessed(3, 1 * kSecond);
  sampler.on_accessed(3, 2 * kSecond);
  sampler.on_allocated(3, 5 * kSecond);
  CHECK(sampler.num_sampled_blocks() == 1);
  sampler.on_evicted(3, 6 * kSecond);
  const auto events = drained(sampler);
  REQUIRE(events.size() == 1);
  CHECK(events[0].lifetime_seconds == 1.0);
  CHECK(events[0].idle_seconds == 1.0);
  CHECK(gaps_of(events[0]).empty());
}

TEST_CASE(
    "KvResidencySampler: an allocation that is not sampled changes nothing",
    "[stats]") {
  double next = 0.0;
  KvResidencySampler sampler = made(
      {.num_blocks = 8, .sample_rate = 0.25, .uniform = [&] { return next; }});
  sampler.on_allocated(3, 0);
  next = 0.25;  // the rate itself is not below it
  sampler.on_allocated(3, 5 * kSecond);
  sampler.on_allocated(4, 5 * kSecond);
  CHECK(sampler.is_sampled(3));
  CHECK_FALSE(sampler.is_sampled(4));
  sampler.on_evicted(3, 6 * kSecond);
  sampler.on_evicted(4, 6 * kSecond);
  const auto events = drained(sampler);
  REQUIRE(events.size() == 1);
  CHECK(events[0].lifetime_seconds == 6.0);
}

TEST_CASE("KvResidencySampler: asks a given source once for each allocation",
          "[stats]") {
  int asked = 0;
  const std::vector<double> draws = {0.5, 0.1, 0.0, 0.3, 0.29999};
  KvResidencySampler sampler =
      made({.num_blocks = 8, .sample_rate = 0.3, .uniform = [&] {
              return draws[static_cast<std::size_t>(asked++)];
            }});
  CHECK(asked == 0);
  for (int block = 0; block < 5; ++block) sampler.on_allocated(block, 0);
  CHECK(asked == 5);
  for (int block = 0; block < 5; ++block) {
    CAPTURE(block);
    CHECK(sampler.is_sampled(block) ==
          (draws[static_cast<std::size_t>(block)] < 0.3));
  }
}

TEST_CASE("KvResidencySampler: a source that gives no number samples nothing",
          "[stats]") {
  KvResidencySampler sampler =
      made({.num_blocks = 8, .uniform = [] {
              return std::numeric_limits<double>::quiet_NaN();
            }});
  for (int block = 0; block < 8; ++block) sampler.on_allocated(block, 0);
  CHECK(sampler.num_sampled_blocks() == 0);
}

TEST_CASE("KvResidencySampler: blocks that are not followed are ignored",
          "[stats]") {
  KvResidencySampler sampler = made_for_all(100);
  const std::int64_t stranger =
      GENERATE(std::int64_t{5}, std::int64_t{100}, std::int64_t{-1},
               std::int64_t{1} << 32, kMax, -kMax - 1);
  CAPTURE(stranger);
  sampler.on_accessed(stranger, 1);
  sampler.on_evicted(stranger, 2);
  if (stranger != 5) {
    sampler.on_allocated(stranger, 0);
    sampler.on_evicted(stranger, 2);
  }
  CHECK(sampler.num_sampled_blocks() == 0);
  CHECK(drained(sampler).empty());
}

TEST_CASE("KvResidencySampler: a block is evicted once", "[stats]") {
  KvResidencySampler sampler = made_for_all();
  sampler.on_allocated(1, 0);
  sampler.on_evicted(1, 1);
  sampler.on_evicted(1, 2);
  CHECK(drained(sampler).size() == 1);
  CHECK(drained(sampler).empty());
}

TEST_CASE("KvResidencySampler: drain appends in the order of evictions",
          "[stats]") {
  KvResidencySampler sampler = made_for_all();
  for (int block = 0; block < 3; ++block) sampler.on_allocated(block, 0);
  sampler.on_evicted(2, 1 * kSecond);
  sampler.on_evicted(0, 2 * kSecond);
  std::vector<KvCacheEvictionEvent> events(1);
  sampler.drain(events);
  sampler.on_evicted(1, 3 * kSecond);
  sampler.drain(events);
  REQUIRE(events.size() == 4);
  CHECK(events[0].lifetime_seconds == 0.0);
  CHECK(events[1].lifetime_seconds == 1.0);
  CHECK(events[2].lifetime_seconds == 2.0);
  CHECK(events[3].lifetime_seconds == 3.0);
}

TEST_CASE("KvResidencySampler: reset forgets blocks and pending events",
          "[stats]") {
  KvResidencySampler sampler = made_for_all();
  for (int block = 0; block < 100; ++block) sampler.on_allocated(block, 0);
  sampler.on_evicted(0, 1);
  sampler.reset();
  CHECK(sampler.num_sampled_blocks() == 0);
  CHECK_FALSE(sampler.is_sampled(99));
  sampler.on_evicted(1, 2);
  CHECK(drained(sampler).empty());
  sampler.on_allocated(1, 2 * kSecond);
  sampler.on_evicted(1, 3 * kSecond);
  REQUIRE(drained(sampler).size() == 1);
}

TEST_CASE("KvResidencySampler: events beyond the limit are counted",
          "[stats]") {
  KvResidencySampler sampler =
      made({.num_blocks = 8, .sample_rate = 1.0, .max_pending_events = 2});
  for (int block = 0; block < 5; ++block) {
    sampler.on_allocated(block, 0);
    sampler.on_evicted(block, (block + 1) * kSecond);
  }
  CHECK(sampler.num_dropped_events() == 3);
  const auto events = drained(sampler);
  REQUIRE(events.size() == 2);
  CHECK(events[0].lifetime_seconds == 1.0);
  CHECK(events[1].lifetime_seconds == 2.0);
  sampler.on_allocated(1, 0);
  sampler.on_evicted(1, 1);
  CHECK(drained(sampler).size() == 1);
  CHECK(sampler.num_dropped_events() == 3);
}

TEST_CASE("KvResidencySampler: a clock that falls gives negative durations",
          "[stats]") {
  KvResidencySampler sampler = made_for_all();
  sampler.on_allocated(1, 10 * kSecond);
  sampler.on_accessed(1, 9 * kSecond);
  sampler.on_accessed(1, 7 * kSecond);
  sampler.on_evicted(1, 6 * kSecond);
  const auto events = drained(sampler);
  REQUIRE(events.size() == 1);
  CHECK(events[0].lifetime_seconds == -4.0);
  CHECK(events[0].idle_seconds == -1.0);
  CHECK(gaps_of(events[0]) == std::vector<double>{-2.0});
}

TEST_CASE("KvResidencySampler: any stamps are safe", "[stats]") {
  KvResidencySampler sampler = made_for_all();
  sampler.on_allocated(1, -kMax - 1);
  sampler.on_accessed(1, kMax);
  sampler.on_accessed(1, -kMax - 1);
  sampler.on_evicted(1, kMax);
  CHECK(drained(sampler).size() == 1);
}

TEST_CASE("KvResidencySampler: samples about the rate, each block alike",
          "[stats]") {
  const double rate = GENERATE(0.001, 0.01, 0.3, 0.99);
  constexpr int kBlocks = 1000;
  constexpr int kRounds = 200;
  KvResidencySampler sampler =
      made({.num_blocks = kBlocks, .sample_rate = rate, .seed = 42});
  int sampled = 0;
  for (int round = 0; round < kRounds; ++round) {
    for (int block = 0; block < kBlocks; ++block) {
      sampler.on_allocated(block, 0);
      if (sampler.is_sampled(block)) ++sampled;
      sampler.on_evicted(block, 1);
    }
    (void)drained(sampler);
  }
  const double n = kBlocks * kRounds;
  const double deviation = std::sqrt(n * rate * (1 - rate));
  CAPTURE(rate, sampled);
  CHECK(std::abs(sampled - n * rate) < 5 * deviation);
}

TEST_CASE("KvResidencySampler: gaps between samples are those of coin flips",
          "[stats]") {
  // Of a rate of 1/2, half of the gaps are 1, a quarter 2, an eighth 3.
  KvResidencySampler sampler =
      made({.num_blocks = 1, .sample_rate = 0.5, .seed = 7});
  std::map<int, int> gaps;
  int last = -1;
  for (int i = 0; i < 100000; ++i) {
    sampler.on_allocated(0, 0);
    if (!sampler.is_sampled(0)) continue;
    ++gaps[i - last];
    last = i;
    sampler.on_evicted(0, 1);
  }
  CHECK(gaps[1] == Approx(25000).epsilon(0.03));
  CHECK(gaps[2] == Approx(12500).epsilon(0.04));
  CHECK(gaps[3] == Approx(6250).epsilon(0.06));
}

TEST_CASE("KvResidencySampler: the seed decides the sample", "[stats]") {
  const auto sample_of = [](std::uint64_t seed) {
    KvResidencySampler sampler =
        made({.num_blocks = 1000, .sample_rate = 0.05, .seed = seed});
    std::set<int> sample;
    for (int block = 0; block < 1000; ++block) {
      sampler.on_allocated(block, 0);
      if (sampler.is_sampled(block)) sample.insert(block);
    }
    return sample;
  };
  CHECK(sample_of(1) == sample_of(1));
  CHECK(sample_of(1) != sample_of(2));
}

TEST_CASE("KvResidencySampler: the smallest rate samples nothing in practice",
          "[stats]") {
  KvResidencySampler sampler =
      made({.num_blocks = 64,
            .sample_rate = std::numeric_limits<double>::denorm_min()});
  for (int i = 0; i < 10000; ++i) sampler.on_allocated(i % 64, 0);
  CHECK(sampler.num_sampled_blocks() == 0);
}

TEST_CASE("KvResidencySampler: agrees with a plain map of all blocks",
          "[stats]") {
  constexpr std::int64_t kBlocks = 300;
  KvResidencySampler sampler = made_for_all(kBlocks);
  struct Life {
    std::int64_t birth;
    std::vector<std::int64_t> accesses;
  };
  std::map<std::int64_t, Life> lives;
  std::mt19937 random(3);
  std::int64_t now = 0;
  std::vector<KvCacheEvictionEvent> events;
  for (int i = 0; i < 30000; ++i) {
    now += static_cast<std::int64_t>(random() % 1000);
    const auto block = static_cast<std::int64_t>(random() % kBlocks);
    switch (random() % 4) {
      case 0:
        sampler.on_allocated(block, now);
        lives[block] = {now, {}};
        break;
      case 1: {
        sampler.on_evicted(block, now);
        const auto life = lives.find(block);
        events.clear();
        sampler.drain(events);
        REQUIRE(events.size() == (life == lives.end() ? 0 : 1));
        if (life == lives.end()) break;
        const auto& [birth, accesses] = life->second;
        const std::size_t n = accesses.size();
        const std::int64_t last = n > 0 ? accesses[n - 1] : birth;
        std::vector<double> gaps;
        for (std::size_t k = n > 4 ? n - 3 : 1; k < n; ++k) {
          gaps.push_back(static_cast<double>(accesses[k] - accesses[k - 1]) /
                         1e9);
        }
        REQUIRE(events[0].lifetime_seconds ==
                static_cast<double>(now - birth) / 1e9);
        REQUIRE(events[0].idle_seconds ==
                static_cast<double>(now - last) / 1e9);
        REQUIRE(gaps_of(events[0]) == gaps);
        lives.erase(life);
        break;
      }
      default:
        sampler.on_accessed(block, now);
        if (lives.count(block) > 0) lives[block].accesses.push_back(now);
    }
    REQUIRE(sampler.num_sampled_blocks() == lives.size());
  }
}

TEST_CASE("KvResidencySampler: options out of range are refused by name",
          "[stats]") {
  KvResidencySamplerOptions options = {.num_blocks = 10};
  SECTION("no rate") {
    options.sample_rate = 0.0;
    CHECK(refusal(options) == "sample_rate = 0 is not above 0 and at most 1");
  }
  SECTION("more than all") {
    options.sample_rate = 1.5;
    CHECK(refusal(options) == "sample_rate = 1.5 is not above 0 and at most 1");
  }
  SECTION("not a number") {
    options.sample_rate = std::numeric_limits<double>::quiet_NaN();
    CHECK(refusal(options) == "sample_rate = nan is not above 0 and at most 1");
  }
  SECTION("no blocks") {
    options.num_blocks = 0;
    CHECK(refusal(options) == "num_blocks = 0 is not in 1 to 4294967295");
  }
  SECTION("too many blocks") {
    options.num_blocks = kMax;
    CHECK(refusal(options) ==
          "num_blocks = 9223372036854775807 is not in 1 to 4294967295");
  }
  SECTION("no events") {
    options.max_pending_events = 0;
    CHECK(refusal(options) == "max_pending_events = 0 is not in 1 to 16777216");
  }
  SECTION("without a place for the error") {
    CHECK_FALSE(KvResidencySampler::create({}).has_value());
  }
}

}  // namespace
}  // namespace vllm_metrics
