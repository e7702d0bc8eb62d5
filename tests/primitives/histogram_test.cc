#include "vllm_metrics/primitives/histogram.h"

#include <atomic>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

namespace vllm_metrics {
namespace {

using Words = std::vector<std::uint64_t>;

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

BucketBounds bounds_of(std::vector<double> list) {
  return *BucketBounds::create(list);
}

Histogram::Snapshot snapshot_of(const Histogram& histogram) {
  Histogram::Snapshot snapshot;
  histogram.snapshot(snapshot);
  return snapshot;
}

TEST_CASE("Histogram: starts empty", "[primitives]") {
  const Histogram histogram(bounds_of({1, 2, 4}));
  const auto snapshot = snapshot_of(histogram);
  CHECK(snapshot.buckets == Words{0, 0, 0, 0});
  CHECK(snapshot.count == 0);
  CHECK(snapshot.sum == 0.0);
  CHECK(histogram.rejected() == 0);
}

TEST_CASE("Histogram: a value equal to a bound lands in that bucket",
          "[primitives]") {
  Histogram histogram(bounds_of({1, 2, 4}));
  for (const double v : {1.0, 1.5, 2.0, 4.0, 4.5, -3.0}) histogram.observe(v);
  const auto snapshot = snapshot_of(histogram);
  CHECK(snapshot.buckets == Words{2, 2, 1, 1});
  CHECK(snapshot.count == 6);
  CHECK(snapshot.sum == 10.0);
}

TEST_CASE("Histogram: snapshots take nothing away", "[primitives]") {
  Histogram histogram(bounds_of({1, 2}));
  for (int i = 1; i <= 5; ++i) {
    histogram.observe(0.5);
    histogram.observe(3.0);
    const auto snapshot = snapshot_of(histogram);
    CHECK(snapshot.buckets == Words{static_cast<std::uint64_t>(i), 0,
                                    static_cast<std::uint64_t>(i)});
    CHECK(snapshot.sum == 3.5 * i);
    CHECK(snapshot_of(histogram).buckets == snapshot.buckets);
  }
}

TEST_CASE("Histogram: an observation that is not finite is dropped and counted",
          "[primitives]") {
  const double bad = GENERATE(values<double>({kNan, -kNan, kInf, -kInf}));
  Histogram histogram(bounds_of({0.1, 1}));
  histogram.observe(0.05);
  SECTION("single") { histogram.observe(bad); }
  SECTION("in a batch") { histogram.observe(std::vector<double>{bad}); }
  histogram.observe(0.5);
  const auto snapshot = snapshot_of(histogram);
  CHECK(snapshot.buckets == Words{1, 1, 0});
  CHECK(snapshot.count == 2);
  CHECK(snapshot.sum == 0.55);
  CHECK(histogram.rejected() == 1);
}

TEST_CASE("Histogram: a value observed n times counts n times",
          "[primitives]") {
  Histogram histogram(bounds_of({1, 2}));
  histogram.observe(1.5, 4);
  histogram.observe(3.0, 0);
  histogram.observe(kNan, 3);
  histogram.observe(kNan, 0);
  const auto snapshot = snapshot_of(histogram);
  CHECK(snapshot.buckets == Words{0, 4, 0});
  CHECK(snapshot.sum == 6.0);
  CHECK(histogram.rejected() == 3);
}

// observe(v, -1) took one from the number of observations under way, flipped
// the halves when that was 0, and left every later snapshot() waiting.
TEST_CASE("Histogram: a negative number of times is refused and counted",
          "[primitives]") {
  Histogram histogram(bounds_of({1, 2}));
  histogram.observe(1.5, static_cast<std::uint64_t>(std::int64_t{-1}));
  histogram.observe(1.5, Histogram::kMaxTimes + 1);
  histogram.observe(kNan, static_cast<std::uint64_t>(std::int64_t{-7}));
  CHECK(snapshot_of(histogram).buckets == Words{0, 0, 0});
  CHECK(histogram.rejected() == 3);
  histogram.observe(1.5, Histogram::kMaxTimes);
  CHECK(snapshot_of(histogram).buckets == Words{0, Histogram::kMaxTimes, 0});
  CHECK(snapshot_of(histogram).sum == 1.5 * 4294967295.0);
  CHECK(histogram.rejected() == 3);
}

TEST_CASE("Histogram: a batch is its observations one by one, bit for bit",
          "[primitives]") {
  const std::size_t size = GENERATE(0U, 1U, 2U, 3U, 4U, 7U, 8U, 9U, 256U);
  const bool equal = GENERATE(false, true);
  CAPTURE(size, equal);
  std::mt19937_64 random(size);
  std::uniform_real_distribution<double> uniform(-0.5, 12.0);
  std::vector<double> values(size, 0.0613);
  if (!equal) {
    for (double& v : values) v = uniform(random);
  }
  if (size > 2) values[size / 2] = kNan;
  Histogram batch(bounds_of({0.05, 0.1, 1, 10}));
  Histogram single(bounds_of({0.05, 0.1, 1, 10}));
  for (int repeat = 0; repeat < 3; ++repeat) {
    batch.observe(values);
    for (const double v : values) single.observe(v);
  }
  const auto a = snapshot_of(batch);
  const auto b = snapshot_of(single);
  CHECK(a.buckets == b.buckets);
  CHECK(a.count == b.count);
  CHECK(std::bit_cast<std::uint64_t>(a.sum) ==
        std::bit_cast<std::uint64_t>(b.sum));
  CHECK(batch.rejected() == single.rejected());
}

// Torn histograms: a scrape that races with observations showed a bucket above
// the count.
TEST_CASE(
    "Histogram: every snapshot beside four writers is a state that "
    "existed",
    "[primitives][concurrent]") {
  Histogram histogram(bounds_of({1, 2, 4}));
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> observed{0};
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t) {
    writers.emplace_back([&, t] {
      const std::vector<double> batch(5, 2.0);
      std::uint64_t mine = 0;
      while (!stop.load(std::memory_order_relaxed)) {
        if (t % 2 == 0) {
          histogram.observe(2.0);
          mine += 1;
        } else {
          histogram.observe(batch);
          mine += batch.size();
        }
      }
      observed.fetch_add(mine);
    });
  }
  std::uint64_t last = 0;
  std::uint64_t torn = 0;
  Histogram::Snapshot snapshot;
  for (int renders = 0; renders < 100;) {
    histogram.snapshot(snapshot);
    const Words expected{0, snapshot.count, 0, 0};
    if (snapshot.buckets != expected || snapshot.count < last ||
        snapshot.sum != 2.0 * static_cast<double>(snapshot.count)) {
      ++torn;
    }
    renders += snapshot.count > last ? 1 : 0;
    last = snapshot.count;
  }
  stop = true;
  for (auto& writer : writers) writer.join();
  CHECK(torn == 0);
  histogram.snapshot(snapshot);
  CHECK(snapshot.count == observed.load());
  CHECK(snapshot.sum == 2.0 * static_cast<double>(observed.load()));
}

TEST_CASE("Histogram: a snapshot beside writers has all of a batch or none",
          "[primitives][concurrent]") {
  Histogram histogram(bounds_of({1, 2, 4}));
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    const std::vector<double> batch{0.5, 1.5, 3.0, 8.0};
    while (!stop.load(std::memory_order_relaxed)) histogram.observe(batch);
  });
  std::atomic<std::uint64_t> partial{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 2; ++t) {
    readers.emplace_back([&] {
      Histogram::Snapshot snapshot;
      std::uint64_t last = 0;
      for (int renders = 0; renders < 100;) {
        histogram.snapshot(snapshot);
        const auto n = snapshot.buckets.front();
        const double sum = 13.0 * static_cast<double>(n);
        if (snapshot.buckets != Words{n, n, n, n} || snapshot.sum != sum) {
          ++partial;
        }
        renders += n > last ? 1 : 0;
        last = n;
      }
    });
  }
  for (auto& reader : readers) reader.join();
  stop = true;
  writer.join();
  CHECK(partial == 0);
}

}  // namespace
}  // namespace vllm_metrics
