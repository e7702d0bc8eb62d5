#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace vllm_metrics::inline v0 {

// When a request was preempted, in order; the first eight times of many, so
// that keeping them allocates nothing. How often it was is num_preemptions.
//
// Unit: seconds; since when is said where one is kept.
// Thread-safety: none; plain data.
class PreemptionTimes {
 public:
  static constexpr std::size_t kMost = 8;

  void add(double seconds) noexcept {
    if (size_ < kMost) seconds_[size_++] = seconds;
  }
  std::span<const double> seconds() const noexcept {
    return {seconds_.data(), size_};
  }

 private:
  std::array<double, kMost> seconds_ = {};
  std::uint32_t size_ = 0;
};

}  // namespace vllm_metrics::inline v0
