#pragma once

// What the machine allows: the same numbers counted into plain memory, by the
// best algorithm known here and nothing else. One thread, no reader, no check.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <span>
#include <vector>

#include "step_data.h"
#include "vllm_metrics/catalogue/catalogue.h"

namespace vllm_metrics::bench {

// Bucket bounds with a table on the top bits of a positive double (sign,
// exponent and two of the mantissa), whose cells hold one bound at most.
class FloorBounds {
 public:
  explicit FloorBounds(std::span<const double> bounds)
      : size_(bounds.size()),
        lowest_(bounds.front()),
        highest_(std::nextafter(bounds.back(), kInfinity)) {
    bounds_.fill(kInfinity);
    std::ranges::copy(bounds, bounds_.begin());
    first_ = cell_of(lowest_);
    const auto cells = static_cast<std::size_t>(cell_of(highest_) - first_) + 1;
    if (cells > table_.size()) std::abort();
    std::size_t below = 0;
    for (std::size_t cell = 0; cell < cells; ++cell) {
      table_[cell] = static_cast<std::uint8_t>(below);
      const auto ours = first_ + static_cast<std::int64_t>(cell);
      if (below < size_ && cell_of(bounds_[below]) == ours) ++below;
      if (below < size_ && cell_of(bounds_[below]) == ours) std::abort();
    }
  }

  std::size_t bucket_count() const noexcept { return size_ + 1; }
  std::size_t bucket_of(double v) const noexcept {
    const double within = std::min(highest_, std::max(lowest_, v));
    const std::size_t bucket =
        table_[static_cast<std::size_t>(cell_of(within) - first_)];
    return bucket + (bits(bounds_[bucket]) < bits(within) ? 1U : 0U);
  }

 private:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  static std::int64_t bits(double v) noexcept {
    return std::bit_cast<std::int64_t>(v);
  }
  static std::int64_t cell_of(double v) noexcept { return bits(v) >> 50; }

  std::size_t size_;
  double lowest_;
  double highest_;
  std::int64_t first_ = 0;
  std::array<double, 32> bounds_;
  std::array<std::uint8_t, 128> table_{};
};

struct FloorHistogram {
  explicit FloorHistogram(MetricId id) : bounds(bounds_of(id)) {}

  static FloorBounds bounds_of(MetricId id) {
    const MetricSpec& spec = spec_of(id);
    return spec.buckets.empty()
               ? FloorBounds(one_two_five_buckets(kMaxModelLen))
               : FloorBounds(spec.buckets);
  }

  void observe(double v) noexcept {
    ++buckets[bounds.bucket_of(v)];
    sum += v;
  }

  // The sum stays in a register; counts gather in four arrays, so that equal
  // buckets in a row do not wait for each other.
  void observe(std::span<const double> values) noexcept {
    std::uint32_t counts[4][32] = {};
    double total = sum;
    const auto count = [&](std::uint32_t* lane, double v) {
      ++lane[bounds.bucket_of(v)];
      total += v;
    };
    std::size_t i = 0;
    for (; i + 4 <= values.size(); i += 4) {
      count(counts[0], values[i]);
      count(counts[1], values[i + 1]);
      count(counts[2], values[i + 2]);
      count(counts[3], values[i + 3]);
    }
    for (; i < values.size(); ++i) {
      count(counts[0], values[i]);
    }
    for (std::size_t b = 0; b < bounds.bucket_count(); ++b)
      buckets[b] += counts[0][b] + counts[1][b] + counts[2][b] + counts[3][b];
    sum = total;
  }

  FloorBounds bounds;
  double sum = 0.0;
  std::array<std::uint64_t, 32> buckets{};
};

// All that a step writes, of one engine.
class Floor {
 public:
  Floor() {
    for (const MetricId id : kRequestHistograms) requests_.emplace_back(id);
  }

  [[gnu::noinline]] void record(const FlatStep& step) noexcept {
    for (std::size_t i = 0; i < gauges_.size(); ++i)
      gauges_[i] = step.gauges[i];
    for (std::size_t i = 0; i < counters_.size(); ++i)
      counters_[i] += step.counters[i];
    step_tokens_.observe(step.step_tokens);
    if (!step.first_tokens.empty()) first_tokens_.observe(step.first_tokens);
    latencies_.observe(step.latencies);
    for (const FlatStep::Ended& ended : step.ended) {
      ++success_[ended.reason];
      for (std::size_t i = 0; i < requests_.size(); ++i)
        requests_[i].observe(ended.values[i]);
    }
  }

  const FloorHistogram& latencies() const noexcept { return latencies_; }

 private:
  std::array<double, kGauges.size()> gauges_{};
  std::array<double, kCounters.size()> counters_{};
  std::array<std::uint64_t, 5> success_{};
  FloorHistogram step_tokens_{MetricId::kIterationTokens};
  FloorHistogram first_tokens_{MetricId::kTimeToFirstToken};
  FloorHistogram latencies_{MetricId::kInterTokenLatency};
  std::vector<FloorHistogram> requests_;
};

// The least that the outputs of a step come to, in plain arrays: whose each one
// is, its tokens counted, and the time since its request's last one appended.
class FloorRequests {
 public:
  explicit FloorRequests(std::size_t count)
      : outputs_(count), tokens_(count), last_(count), latencies_(count) {
    for (std::uint32_t i = 0; i < count; ++i) outputs_[i] = {i, 1};
  }

  [[gnu::noinline]] void update(double now) noexcept {
    std::size_t appended = 0;
    for (const Output& output : outputs_) {
      step_tokens_ += output.new_tokens;
      tokens_[output.request] += output.new_tokens;
      latencies_[appended++] = now - last_[output.request];
      last_[output.request] = now;
    }
  }

 private:
  struct Output {
    std::uint32_t request;
    std::uint32_t new_tokens;
  };
  std::vector<Output> outputs_;
  std::uint64_t step_tokens_ = 0;
  std::vector<std::uint64_t> tokens_;
  std::vector<double> last_;
  std::vector<double> latencies_;
};

}  // namespace vllm_metrics::bench
