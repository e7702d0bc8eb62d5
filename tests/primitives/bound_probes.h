#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

namespace vllm_metrics {

// The bucket of `v` by definition: how many bounds are below it.
inline std::size_t bounds_below(std::span<const double> bounds, double v) {
  return static_cast<std::size_t>(
      std::ranges::count_if(bounds, [v](double bound) { return bound < v; }));
}

// The values where a search goes wrong if it does: each bound and its two
// neighbours, the middle between bounds, and the ends of the number line.
inline std::vector<double> probes_of(std::span<const double> bounds) {
  using Limits = std::numeric_limits<double>;
  std::vector<double> probes = {0.0,
                                -0.0,
                                Limits::denorm_min(),
                                -Limits::denorm_min(),
                                Limits::min(),
                                std::nextafter(Limits::min(), 0.0),
                                Limits::max(),
                                Limits::lowest(),
                                Limits::infinity(),
                                -Limits::infinity(),
                                1.0,
                                -1.0};
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    probes.push_back(bounds[i]);
    probes.push_back(-bounds[i]);
    probes.push_back(std::nextafter(bounds[i], Limits::infinity()));
    probes.push_back(std::nextafter(bounds[i], -Limits::infinity()));
    probes.push_back(bounds[i] * 2.0);
    probes.push_back(bounds[i] * 0.5);
    if (i > 0) probes.push_back(std::midpoint(bounds[i - 1], bounds[i]));
  }
  return probes;
}

}  // namespace vllm_metrics
