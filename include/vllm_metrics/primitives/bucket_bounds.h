#pragma once

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace vllm_metrics::inline v0 {

// The upper bounds of a histogram's buckets, checked once, and the search for
// the bucket of a value.
//
// A bound is inclusive: a value equal to it lands in its bucket. The bucket
// above the last finite bound (`+Inf`) is implied, so `bucket_count()` is
// `size() + 1`.
//
// The search is a table on the top bits of the double, then one compare: the
// bits of a positive double are ordered as its value is, so a cell of the table
// spans a fraction of a power of two, and the constructor takes as many
// mantissa bits as leave at most one bound a cell. Bounds that do not suit it
// (not positive, more than 254, or very dense) are searched by halves.
//
// Thread-safety: immutable after construction. Copying allocates.
// Definition: Prometheus "Histogram" (`le`).
class BucketBounds {
 public:
  // `bounds` rising, finite, at least one; a trailing +infinity is accepted and
  // dropped. On failure returns nullopt and says why in `error`, e.g.
  // "bounds[3] = 0.04 is not above bounds[2] = 0.06".
  static std::optional<BucketBounds> create(std::span<const double> bounds,
                                            std::string* error = nullptr);

  std::size_t size() const noexcept { return size_; }
  std::size_t bucket_count() const noexcept { return size_ + 1; }
  std::span<const double> values() const noexcept {
    return {padded_.data(), size_};
  }

  // The index of the bucket of `v`: the number of bounds below it. NaN has no
  // bucket; here it gets one at either end, so callers reject it first.
  std::size_t bucket_of(double v) const noexcept {
    return table_.empty() ? search(v) : look_up(v);
  }

  // The same, where the caller has seen that has_table() is true. Clamped as a
  // double, which in a loop over many values costs least.
  std::size_t look_up(double v) const noexcept {
    return bucket_in_cell(bits_of(std::min(highest_, std::max(lowest_, v))));
  }

  // The same for one value, where the caller has seen that can_look_up(v) is:
  // that took its bits to an integer register, and there they stay.
  std::size_t look_up_one(double v) const noexcept {
    return bucket_in_cell(
        std::clamp(bits_of(v), bits_of(lowest_), bits_of(highest_)));
  }
  bool has_table() const noexcept { return !table_.empty(); }

  // has_table(), and `v` is +0 or a positive finite number: as unsigned bits
  // all others are larger, or equal to this.
  bool can_look_up(double v) const noexcept {
    return std::bit_cast<std::uint64_t>(v) < look_up_end_;
  }
  std::uint64_t look_up_end() const noexcept { return look_up_end_; }

  friend bool operator==(const BucketBounds& a,
                         const BucketBounds& b) noexcept {
    return std::ranges::equal(a.values(), b.values());
  }

 private:
  explicit BucketBounds(std::span<const double> bounds)
      : size_(bounds.size()), padded_(bounds.begin(), bounds.end()) {
    padded_.push_back(std::numeric_limits<double>::infinity());
    if (bounds.front() > 0.0 && size_ <= kMaxTableBounds) {
      for (shift_ = kOneMantissaBit;
           shift_ > kOneMantissaBit - kMaxExtraBits && !build_table();)
        --shift_;
    }
    if (has_table())
      look_up_end_ = std::bit_cast<std::uint64_t>(padded_.back());
  }

  // Not std::to_string: that one obeys the process locale.
  static std::string text(std::size_t index, double bound) {
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, bound).ptr;
    return "bounds[" + std::to_string(index) +
           "] = " + std::string(digits, end);
  }

  static std::int64_t bits_of(double v) noexcept {
    return std::bit_cast<std::int64_t>(v);
  }
  std::int64_t cell_of(double v) const noexcept { return bits_of(v) >> shift_; }

  // `bits` are within the table's cells.
  std::size_t bucket_in_cell(std::int64_t bits) const noexcept {
    // The table's start moved back to cell 0, which a loop computes once.
    const auto cell_0 = reinterpret_cast<std::uintptr_t>(table_.data()) -
                        static_cast<std::uintptr_t>(first_cell_);
    const std::size_t i = *reinterpret_cast<const std::uint8_t*>(
        cell_0 + static_cast<std::uintptr_t>(bits >> shift_));
    return i + (bits_of(padded_[i]) < bits ? 1U : 0U);
  }

  // One entry for each cell from the first bound's to the one just above the
  // last bound: how many bounds lie below the cell. False when a cell holds
  // more than one.
  bool build_table() {
    lowest_ = padded_.front();
    highest_ = std::nextafter(padded_[size_ - 1], padded_[size_]);
    first_cell_ = cell_of(lowest_);
    const auto last = cell_of(highest_);
    table_.clear();
    if (last - first_cell_ >= kMaxTableCells) return false;
    std::size_t below = 0;
    for (auto cell = first_cell_; cell <= last; ++cell) {
      table_.push_back(static_cast<std::uint8_t>(below));
      if (below < size_ && cell_of(padded_[below]) == cell) ++below;
      if (below < size_ && cell_of(padded_[below]) == cell) {
        table_.clear();
        return false;
      }
    }
    return true;
  }

  std::size_t search(double v) const noexcept {
    const auto bounds = values();
    return static_cast<std::size_t>(std::ranges::lower_bound(bounds, v) -
                                    bounds.begin());
  }

  static constexpr int kOneMantissaBit =
      51;  // sign, exponent and one mantissa bit remain
  static constexpr int kMaxExtraBits = 8;
  static constexpr std::size_t kMaxTableBounds = 254;
  static constexpr std::int64_t kMaxTableCells = 4096;

  std::size_t size_;
  std::vector<double> padded_;  // +infinity behind the last, for look_up
  std::vector<std::uint8_t> table_;
  double lowest_ = 0.0;  // what look_up clamps to
  double highest_ = 0.0;
  std::uint64_t look_up_end_ = 0;
  std::int64_t first_cell_ = 0;
  int shift_ = kOneMantissaBit;
};

inline std::optional<BucketBounds> BucketBounds::create(
    std::span<const double> bounds, std::string* error) {
  const auto fail = [error](std::string why) -> std::optional<BucketBounds> {
    if (error != nullptr) *error = std::move(why);
    return std::nullopt;
  };
  if (!bounds.empty() &&
      bounds.back() == std::numeric_limits<double>::infinity()) {
    bounds = bounds.first(bounds.size() - 1);
  }
  if (bounds.empty()) return fail("at least one finite bound is needed");
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    if (!std::isfinite(bounds[i]))
      return fail(text(i, bounds[i]) + " is not finite");
    if (i > 0 && !(bounds[i] > bounds[i - 1])) {
      return fail(text(i, bounds[i]) + " is not above " +
                  text(i - 1, bounds[i - 1]));
    }
  }
  return BucketBounds(bounds);
}

}  // namespace vllm_metrics::inline v0
