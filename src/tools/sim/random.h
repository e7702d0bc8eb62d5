#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace vllm_metrics::sim {

// The finaliser of SplitMix64: every bit of the input moves every bit of the
// result. Also how prefix hashes are made.
constexpr std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9;
  x ^= x >> 27;
  x *= 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// A hash of an ordered pair, for chains: hash of all before, then one more.
constexpr std::uint64_t chain(std::uint64_t before, std::uint64_t next) {
  return mix(before + 0x9e3779b97f4a7c15 + mix(next + 0x9e3779b97f4a7c15));
}

// SplitMix64 with the distributions that a workload needs. Those of <random>
// differ between standard libraries; one seed must give one workload.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15); }

  // In (0, 1): never 0, so that its logarithm is finite.
  double uniform() {
    return (static_cast<double>(next() >> 11) + 0.5) * 0x1p-53;
  }

  double exponential(double mean) { return -mean * std::log(uniform()); }

  // `sigma` is that of the logarithm.
  double log_normal(double mean, double sigma) {
    const double radius = std::sqrt(-2.0 * std::log(uniform()));
    const double normal = radius * std::cos(2.0 * std::numbers::pi * uniform());
    return mean * std::exp(sigma * normal - sigma * sigma / 2.0);
  }

 private:
  std::uint64_t state_;
};

}  // namespace vllm_metrics::sim
