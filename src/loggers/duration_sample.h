#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace vllm_metrics::inline v0 {

// Durations of an interval, for their quantiles: all of them, or a uniform
// sample once there are more than fit. Their place is taken at the first one.
class DurationSample {
 public:
  explicit DurationSample(std::size_t most) : most_(most) {}

  // True when a value had to be left to chance. One that is not finite is
  // dropped, as on the page: it has no place in an order.
  bool add(double seconds) {
    if (!std::isfinite(seconds)) return false;
    if (values_.capacity() == 0) values_.reserve(most_);
    add_to_sum(seconds);
    ++count_;
    if (values_.size() < most_) {
      values_.push_back(seconds);
      return false;
    }
    const auto at =
        std::uniform_int_distribution<std::uint64_t>(0, count_ - 1)(random_);
    if (at < values_.size()) values_[at] = seconds;
    return true;
  }

  std::uint64_t count() const { return count_; }
  bool is_complete() const { return count_ == values_.size(); }
  double sum() const { return sum_ + lost_; }  // of all, not of the sample
  std::span<double> values() { return values_; }
  std::span<const double> values() const { return values_; }

  void clear() {
    values_.clear();
    count_ = 0;
    sum_ = lost_ = 0.0;
  }

 private:
  // Neumaier: what an addition rounds off is kept beside the sum.
  void add_to_sum(double v) {
    const double sum = sum_ + v;
    lost_ +=
        std::fabs(sum_) >= std::fabs(v) ? (sum_ - sum) + v : (v - sum) + sum_;
    sum_ = sum;
  }

  std::size_t most_;
  std::vector<double> values_;
  std::uint64_t count_ = 0;
  double sum_ = 0.0;
  double lost_ = 0.0;
  std::minstd_rand random_;  // any sequence will do, and the same every time
};

}  // namespace vllm_metrics::inline v0
