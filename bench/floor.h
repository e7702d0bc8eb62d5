#pragma once

// What the machine allows: the same numbers counted into plain memory, by a
// search in a table with the sum in a register, and nothing else. One thread,
// no reader, no check.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "step_data.h"
#include "vllm_metrics/catalogue/catalogue.h"
#include "vllm_metrics/stats/iteration_stats.h"
#include "vllm_metrics/stats/scheduler_stats.h"

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

// All that a step writes, of one engine, from the structs that record() takes.
class Floor {
 public:
  [[gnu::noinline]] void record(const SchedulerStats& scheduler,
                                const IterationStats& iteration) noexcept {
    record(scheduler);
    record(iteration);
    for (const FinishedRequestStats& finished : iteration.finished_requests)
      record(finished);
  }

 private:
  void record(const SchedulerStats& scheduler) noexcept {
    gauges_[0] = real(scheduler.num_running_reqs);
    gauges_[1] =
        real(scheduler.num_waiting_reqs + scheduler.num_skipped_waiting_reqs);
    gauges_[2] = real(scheduler.num_waiting_reqs);
    gauges_[3] = real(scheduler.num_skipped_waiting_reqs);
    gauges_[4] = scheduler.kv_cache_usage;
    counters_[0] += scheduler.prefix_cache_stats.queries;
    counters_[1] += scheduler.prefix_cache_stats.hits;
    counters_[2] += scheduler.connector_prefix_cache_stats->queries;
    counters_[3] += scheduler.connector_prefix_cache_stats->hits;
    estimates_[0] += scheduler.perf_stats->num_flops_per_gpu;
    estimates_[1] += scheduler.perf_stats->num_read_bytes_per_gpu;
    estimates_[2] += scheduler.perf_stats->num_write_bytes_per_gpu;
  }

  void record(const IterationStats& iteration) noexcept {
    const PromptTokenStats& prompt = iteration.prompt_token_stats;
    counters_[4] += iteration.num_preempted_reqs;
    counters_[5] += prompt.total;
    counters_[6] += prompt.computed;
    counters_[7] += prompt.local_cache_hit;
    counters_[8] += prompt.external_kv_transfer;
    counters_[9] += prompt.cached_tokens;
    counters_[10] += iteration.num_generation_tokens;
    step_tokens_.observe(
        real(prompt.computed + iteration.num_generation_tokens));
    for (const auto tokens : iteration.max_num_generation_tokens_iter)
      requests_[11].observe(real(tokens));
    for (const auto n : iteration.n_params_iter) requests_[12].observe(real(n));
    if (!iteration.time_to_first_tokens_iter.empty())
      first_tokens_.observe(iteration.time_to_first_tokens_iter);
    latencies_.observe(iteration.inter_token_latencies_iter);
  }

  void record(const FinishedRequestStats& finished) noexcept {
    ++success_[static_cast<std::size_t>(finished.finish_reason)];
    requests_[0].observe(finished.e2e_latency);
    requests_[1].observe(*finished.queued_time);
    requests_[2].observe(*finished.prefill_time);
    requests_[3].observe(*finished.inference_time);
    requests_[4].observe(*finished.decode_time);
    requests_[5].observe(finished.mean_time_per_output_token);
    requests_[6].observe(real(finished.num_prompt_tokens));
    requests_[7].observe(
        real(finished.num_prompt_tokens - finished.num_cached_tokens));
    requests_[8].observe(real(finished.num_generation_tokens));
    requests_[9].observe(real(*finished.max_tokens_param));
    requests_[10].observe(real(finished.num_preemptions));
  }

  static double real(std::int64_t n) noexcept { return static_cast<double>(n); }

  template <std::size_t... kIndex>
  static std::array<FloorHistogram, sizeof...(kIndex)> histograms(
      std::index_sequence<kIndex...>) {
    return {FloorHistogram(kRequestHistograms[kIndex])...};
  }

  std::array<double, 5> gauges_{};
  std::array<std::int64_t, 11> counters_{};
  std::array<double, 3> estimates_{};
  std::array<std::uint64_t, 5> success_{};
  FloorHistogram step_tokens_{MetricId::kIterationTokens};
  FloorHistogram first_tokens_{MetricId::kTimeToFirstToken};
  FloorHistogram latencies_{MetricId::kInterTokenLatency};
  std::array<FloorHistogram, kRequestHistograms.size()> requests_ =
      histograms(std::make_index_sequence<kRequestHistograms.size()>());
};

// The least that the outputs of a step come to, in plain arrays: whose each one
// is, its tokens counted, and the time since its request's last one appended.
class FloorRequests {
 public:
  explicit FloorRequests(std::size_t count)
      : outputs_(count), requests_(count), latencies_(count) {
    for (std::uint32_t i = 0; i < count; ++i) outputs_[i] = {i, 1};
  }

  [[gnu::noinline]] void update(double now) noexcept {
    std::size_t appended = 0;
    for (const Output& output : outputs_) {
      Request& request = requests_[output.request];
      step_tokens_ += output.new_tokens;
      request.tokens += output.new_tokens;
      latencies_[appended++] = now - request.last;
      request.last = now;
    }
  }

 private:
  struct Output {
    std::uint32_t request;
    std::uint32_t new_tokens;
  };
  struct Request {
    std::uint64_t tokens = 0;
    double last = 0.0;
  };
  std::vector<Output> outputs_;
  std::uint64_t step_tokens_ = 0;
  std::vector<Request> requests_;
  std::vector<double> latencies_;
};

}  // namespace vllm_metrics::bench
