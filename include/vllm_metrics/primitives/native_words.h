#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "vllm_metrics/primitives/bucket_tally.h"
#include "vllm_metrics/primitives/cell.h"
#include "vllm_metrics/primitives/native_buckets.h"
#include "vllm_metrics/primitives/native_format.h"
#include "vllm_metrics/primitives/native_tally.h"

namespace vllm_metrics::inline v0 {

// The writer's side of the words of native_format.h: `Word` is a bank's Cell,
// or an integer.
//
// The counts are a window of buckets in a row. A value outside it moves it if
// there is room for all that was counted, else pairs of buckets merge and the
// schema falls by one, until there is: at schema -4, 132 buckets hold any
// double. That happens a few times in a histogram's life and takes some
// hundred steps; counting a value takes a constant number.
//
// Thread-safety: none. Errors: none; allocates nothing.
// Definition: Prometheus "Native Histograms"; reducing the resolution is the
// last resort of client_golang's bucket limit, and the only one here.
template <class Word>
class NativeWords {
 public:
  NativeWords(Word* words, std::uint32_t buckets) noexcept
      : words_(words), buckets_(buckets) {}

  // Empty, with room around the value 1.
  void reset(const NativeHistogramOptions& options) noexcept {
    put_signed(kSchema, options.schema);
    put_signed(kFirst, -static_cast<std::int64_t>(buckets_ / 2));
    put(words_[kThreshold],
        std::bit_cast<std::uint64_t>(options.zero_threshold));
    put(words_[kZeros], 0);
    for (std::uint32_t i = 0; i < buckets_; ++i) put(counts()[i], 0);
  }

  // The value `v`, `n` times. What is not above the threshold counts as zero;
  // infinities and NaN are the caller's to keep away.
  void add(double v, std::uint64_t n) noexcept {
    if (!(v > zero_threshold())) {
      add_zeros(n);
    } else {
      add_finest(native::finest_index(v), n);
    }
  }

  // Each value once, but for those that are not finite; `counted` is what the
  // classic buckets made of them. Equal ones are searched once a run.
  void add_all(std::span<const double> values, const Tally& counted) noexcept;

  int schema() const noexcept {
    return static_cast<int>(std::bit_cast<std::int64_t>(get(words_[kSchema])));
  }
  double zero_threshold() const noexcept {
    return std::bit_cast<double>(get(words_[kThreshold]));
  }

  // Counts a value by its index at the finest schema.
  void add_finest(std::int32_t finest, std::uint64_t n) noexcept {
    const std::int32_t index =
        native::coarser_index(finest, kMaxNativeSchema - schema());
    auto slot = static_cast<std::uint32_t>(index - first());
    if (slot >= buckets_) [[unlikely]]
      slot = make_room(finest);
    add_to(slot, n);
  }
  void add_zeros(std::uint64_t n) noexcept {
    put(words_[kZeros], get(words_[kZeros]) + n);
  }

  // For merging: pairs of buckets become one, the schema falls by one; and
  // buckets at or below `threshold` become zeros.
  void halve_resolution() noexcept;
  void raise_threshold(double threshold) noexcept;

 private:
  enum : std::size_t { kSchema, kFirst, kThreshold, kZeros };

  static std::uint64_t get(std::uint64_t word) noexcept { return word; }
  static std::uint64_t get(const Cell& cell) noexcept { return cell.own(); }
  static void put(std::uint64_t& word, std::uint64_t value) noexcept {
    word = value;
  }
  static void put(Cell& cell, std::uint64_t value) noexcept {
    cell.store(value);
  }
  void put_signed(std::size_t word, std::int64_t value) noexcept {
    put(words_[word], std::bit_cast<std::uint64_t>(value));
  }

  Word* counts() const noexcept { return words_ + kNativeHeaderWords; }
  std::int32_t first() const noexcept {
    return static_cast<std::int32_t>(
        std::bit_cast<std::int64_t>(get(words_[kFirst])));
  }

  void add_to(std::size_t slot, std::uint64_t n) noexcept {
    put(counts()[slot], get(counts()[slot]) + n);
  }
  std::uint32_t make_room(std::int32_t finest) noexcept;
  void move_window(std::int32_t first) noexcept;

  Word* words_;
  std::uint32_t buckets_;
};

template <class Word>
void NativeWords<Word>::add_all(std::span<const double> values,
                                const Tally& counted) noexcept {
  const bool in_runs = values.size() >= 2 && values[0] == values[1];
  if (!in_runs && counted.not_finite + counted.negative == 0)
    values = values.subspan(native::tally(
        {schema(), first(), buckets_, zero_threshold()}, values,
        [this](std::size_t slot, std::uint64_t n) { add_to(slot, n); }));
  while (!values.empty()) {
    const std::size_t run = in_runs ? internal::run_length(values) : 1;
    if (std::isfinite(values[0])) [[likely]]
      add(values[0], run);
    values = values.subspan(run);
  }
}

// Where the value goes, after there is a place for it. Room that is left over
// is left on both sides.
template <class Word>
[[gnu::noinline]] std::uint32_t NativeWords<Word>::make_room(
    std::int32_t finest) noexcept {
  for (;;) {
    const std::int32_t index =
        native::coarser_index(finest, kMaxNativeSchema - schema());
    std::int32_t lowest = index;
    std::int32_t highest = index;
    for (std::uint32_t i = 0; i < buckets_; ++i) {
      if (get(counts()[i]) == 0) continue;
      const std::int32_t used = first() + static_cast<std::int32_t>(i);
      lowest = std::min(lowest, used);
      highest = std::max(highest, used);
    }
    const auto span = static_cast<std::uint32_t>(highest - lowest) + 1;
    if (span <= buckets_) {
      move_window(lowest - static_cast<std::int32_t>((buckets_ - span) / 2));
      return static_cast<std::uint32_t>(index - first());
    }
    if (schema() <= kMinNativeSchema)  // fewer buckets than are allowed
      return index > first() ? buckets_ - 1 : 0;
    halve_resolution();
  }
}

// All counts that are not zero stay inside.
template <class Word>
void NativeWords<Word>::move_window(std::int32_t to) noexcept {
  const std::int64_t by = std::int64_t{to} - first();
  const auto n = static_cast<std::int64_t>(buckets_);
  const auto take = [&](std::int64_t slot) {
    const std::int64_t from = slot + by;
    return from < 0 || from >= n ? 0 : get(counts()[from]);
  };
  if (by > 0) {
    for (std::int64_t i = 0; i < n; ++i) put(counts()[i], take(i));
  } else {
    for (std::int64_t i = n - 1; i >= 0; --i) put(counts()[i], take(i));
  }
  put_signed(kFirst, to);
}

template <class Word>
void NativeWords<Word>::halve_resolution() noexcept {
  const std::int32_t old_first = first();
  const std::int32_t new_first = native::coarser_index(old_first, 1);
  for (std::uint32_t i = 0; i < buckets_; ++i) {
    const std::uint64_t n = get(counts()[i]);
    put(counts()[i], 0);
    // Never above i, which is done with.
    const std::int32_t to =
        native::coarser_index(old_first + static_cast<std::int32_t>(i), 1) -
        new_first;
    put(counts()[to], get(counts()[to]) + n);
  }
  put_signed(kFirst, new_first);
  put_signed(kSchema, schema() - 1);
}

template <class Word>
void NativeWords<Word>::raise_threshold(double threshold) noexcept {
  for (std::uint32_t i = 0; i < buckets_; ++i) {
    if (get(counts()[i]) == 0) continue;
    const std::int32_t index = first() + static_cast<std::int32_t>(i);
    if (native::upper_bound(index, schema()) > threshold) break;
    add_zeros(get(counts()[i]));
    put(counts()[i], 0);
  }
  put(words_[kThreshold], std::bit_cast<std::uint64_t>(threshold));
}

}  // namespace vllm_metrics::inline v0
