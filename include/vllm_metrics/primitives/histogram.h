#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "vllm_metrics/primitives/bucket_bounds.h"
#include "vllm_metrics/primitives/bucket_tally.h"

namespace vllm_metrics::inline v0 {

// Observations counted into buckets, e.g. the time of each call in seconds.
// For many observations of one scheduler step, the engine's Bank is cheaper and
// agrees with the other metrics of that step.
//
// Unit: that of the bounds; base units, named at the end of the family's name.
// Thread-safety: observe() from any thread, without a lock. snapshot() from any
// thread; it returns a state that existed (count, buckets and sum belong to the
// same observations) and may wait for an observe() that is under way.
// Errors: none returned. NaN and infinite values are dropped and counted in
// rejected(), as is a call with more than kMaxTimes. Negative values are legal.
// Memory: two sets of `bounds.size() + 3` words. observe() allocates nothing.
// Definition: Prometheus "Histogram"; the two halves follow client_golang.
class Histogram {
 public:
  struct Snapshot {
    std::vector<std::uint64_t> buckets;  // not cumulative; the last is +Inf
    std::uint64_t count = 0;             // the sum of `buckets`
    double sum = 0.0;
  };

  explicit Histogram(BucketBounds bounds)
      : bounds_(std::move(bounds)),
        halves_{Half(bounds_.bucket_count()), Half(bounds_.bucket_count())} {}
  // One whose words lie in memory that other processes read: its buckets, the
  // sum, and how many observations have begun and have ended. stored_words() of
  // them, all zero or as a histogram with these bounds left them.
  Histogram(BucketBounds bounds, std::atomic<std::uint64_t>* stored)
      : bounds_(std::move(bounds)),
        halves_{Half(0), Half(0)},
        stored_(stored) {}
  static std::size_t stored_words(const BucketBounds& bounds) noexcept {
    return bounds.bucket_count() + 3;
  }
  Histogram(const Histogram&) = delete;
  Histogram& operator=(const Histogram&) = delete;

  // The most times that observe(v, n) believes; anything above is a negative
  // number that lost its sign.
  static constexpr std::uint64_t kMaxTimes =
      std::numeric_limits<std::uint32_t>::max();

  void observe(double v) noexcept { observe(v, 1); }

  // The value `v`, `n` times. The sum grows by one product, rounded once.
  void observe(double v, std::uint64_t n) noexcept {
    if (n == 0) return;
    if (!std::isfinite(v) || n > kMaxTimes) [[unlikely]] {
      rejected_.fetch_add(n > kMaxTimes ? 1 : n, std::memory_order_relaxed);
      return;
    }
    if (stored_ != nullptr) [[unlikely]]
      return observe_stored(std::span(&v, 1), n);
    Half& half = enter(n);
    half.buckets[bounds_.bucket_of(v)].fetch_add(n, std::memory_order_relaxed);
    half.sum.fetch_add(n == 1 ? v : v * static_cast<double>(n),
                       std::memory_order_relaxed);
    leave(half, n);
  }

  // Each value once: a snapshot has all of them or none.
  void observe(std::span<const double> values) noexcept {
    const std::uint64_t n = values.size();
    if (n == 0) return;
    if (stored_ != nullptr) [[unlikely]]
      return observe_stored(values, 1);
    Half& half = enter(n);
    const auto add = [&half](std::size_t bucket, std::uint64_t gained) {
      half.buckets[bucket].fetch_add(gained, std::memory_order_relaxed);
    };
    const Tally counted = tally<Negatives::kAllowed>(bounds_, values, 0.0, add);
    double before = half.sum.load(std::memory_order_relaxed);
    while (!half.sum.compare_exchange_weak(before, sum_in_order(before, values),
                                           std::memory_order_relaxed)) {
    }
    if (counted.not_finite != 0)
      rejected_.fetch_add(counted.not_finite, std::memory_order_relaxed);
    leave(half, n);
  }

  // Fills `out`; reuses its storage.
  void snapshot(Snapshot& out) const {
    out.buckets.resize(bounds_.bucket_count());
    out.sum = read(out.buckets);
    out.count = 0;
    for (const auto n : out.buckets) out.count += n;
  }

  // The same into `bounds().bucket_count()` words; returns the sum.
  double read(std::span<std::uint64_t> buckets) const noexcept;

  const BucketBounds& bounds() const noexcept { return bounds_; }

  // Values dropped since construction because they were not finite.
  std::uint64_t rejected() const noexcept {
    return rejected_.load(std::memory_order_relaxed);
  }

 private:
  // Writers fill the hot half while a reader empties the cold one.
  struct alignas(64) Half {
    explicit Half(std::size_t bucket_count) : buckets(bucket_count) {}
    std::atomic<std::uint64_t> done{
        0};  // observations that have left this half
    std::atomic<double> sum{0.0};
    std::vector<std::atomic<std::uint64_t>> buckets;
  };

  static constexpr std::uint64_t kHotBit = std::uint64_t{1} << 63;

  // One fetch_add both announces `n` observations and tells which half is hot,
  // so a reader that flips the bit knows how many went into the half it took.
  // Acquire: pairs with the reader's flip, before which that half was emptied;
  // later writers' fetch_adds continue the flip's release sequence.
  Half& enter(std::uint64_t n) noexcept {
    return halves_[entered_.fetch_add(n, std::memory_order_acquire) >> 63];
  }
  // Release: the reader that sees the count sees the buckets and the sum. All
  // writers' increments form one release sequence.
  static void leave(Half& half, std::uint64_t n) noexcept {
    half.done.fetch_add(n, std::memory_order_release);
  }

  static double sum_in_order(double sum,
                             std::span<const double> values) noexcept {
    for (const double v : values) sum = std::isfinite(v) ? sum + v : sum;
    return sum;
  }

  void observe_stored(std::span<const double> values,
                      std::uint64_t times) noexcept;
  double read_stored(std::span<std::uint64_t> buckets) const noexcept;

  BucketBounds bounds_;
  mutable std::atomic<std::uint64_t> entered_{0};  // top bit: the hot half
  mutable std::array<Half, 2> halves_;
  mutable std::atomic_flag reading_;
  std::atomic<std::uint64_t> rejected_{0};
  std::atomic<std::uint64_t>* stored_ = nullptr;  // else in halves_
};

// Nobody flips halves here: readers of other processes cannot. They look how
// many have ended, read, and look how many have begun; if that is the same,
// nobody was inside. Release: who sees a bucket sees that it has begun.
inline void Histogram::observe_stored(std::span<const double> values,
                                      std::uint64_t times) noexcept {
  std::atomic<std::uint64_t>* const sum = stored_ + bounds_.bucket_count();
  const std::uint64_t n = values.size() * times;
  sum[1].fetch_add(n, std::memory_order_relaxed);
  for (const double v : values) {
    if (!std::isfinite(v)) {
      rejected_.fetch_add(times, std::memory_order_relaxed);
      continue;
    }
    stored_[bounds_.bucket_of(v)].fetch_add(times, std::memory_order_release);
    const double added = times == 1 ? v : v * static_cast<double>(times);
    std::uint64_t before = sum->load(std::memory_order_relaxed);
    while (!sum->compare_exchange_weak(
        before,
        std::bit_cast<std::uint64_t>(std::bit_cast<double>(before) + added),
        std::memory_order_release, std::memory_order_relaxed)) {
    }
  }
  sum[2].fetch_add(n, std::memory_order_release);
}

// Bounded: where writers leave no gap, the sum may be ahead of the buckets.
inline double Histogram::read_stored(
    std::span<std::uint64_t> buckets) const noexcept {
  constexpr int kMostAttempts = 64;
  const std::atomic<std::uint64_t>* const sum =
      stored_ + bounds_.bucket_count();
  for (int attempt = 0;; ++attempt) {
    const std::uint64_t ended = sum[2].load(std::memory_order_acquire);
    for (std::size_t b = 0; b < buckets.size(); ++b)
      buckets[b] = stored_[b].load(std::memory_order_acquire);
    const std::uint64_t total = sum->load(std::memory_order_acquire);
    if (sum[1].load(std::memory_order_relaxed) == ended ||
        attempt == kMostAttempts)
      return std::bit_cast<double>(total);
  }
}

inline double Histogram::read(std::span<std::uint64_t> buckets) const noexcept {
  if (stored_ != nullptr) return read_stored(buckets);
  while (reading_.test_and_set(std::memory_order_acquire))
    std::this_thread::yield();
  const std::uint64_t before =
      entered_.fetch_add(kHotBit, std::memory_order_acq_rel);
  Half& cold = halves_[before >> 63];
  Half& hot = halves_[1 - (before >> 63)];
  const std::uint64_t entered = before & ~kHotBit;
  while (cold.done.load(std::memory_order_acquire) != entered)
    std::this_thread::yield();

  // No writer is left in `cold`; what it holds moves on, so that the halves
  // stay one histogram. The next flip publishes the zeros.
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    buckets[b] = cold.buckets[b].exchange(0, std::memory_order_relaxed);
    if (buckets[b] != 0)
      hot.buckets[b].fetch_add(buckets[b], std::memory_order_relaxed);
  }
  const double sum = cold.sum.exchange(0.0, std::memory_order_relaxed);
  hot.sum.fetch_add(sum, std::memory_order_relaxed);
  cold.done.store(0, std::memory_order_relaxed);
  hot.done.fetch_add(entered, std::memory_order_relaxed);
  reading_.clear(std::memory_order_release);
  return sum;
}

}  // namespace vllm_metrics::inline v0
