#include "src/tools/doctor/reading.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace vllm_metrics::doctor {
namespace {

std::optional<double> ratio(std::optional<double> part,
                            std::optional<double> whole) {
  if (!part.has_value() || whole.value_or(0.0) <= 0.0) return std::nullopt;
  return *part / *whole;
}

}  // namespace

double Distribution::quantile(double q) const {
  if (count <= 0.0 || buckets.empty())
    return std::numeric_limits<double>::quiet_NaN();
  const double rank = q * count;
  Bucket lower;
  for (const Bucket& bucket : buckets) {
    if (bucket.count >= rank) {
      if (std::isinf(bucket.bound)) return lower.bound;
      const double in_bucket = bucket.count - lower.count;
      if (in_bucket <= 0.0) return bucket.bound;
      return lower.bound +
             (bucket.bound - lower.bound) * (rank - lower.count) / in_bucket;
    }
    lower = bucket;
  }
  return lower.bound;
}

double Distribution::share_up_to(double bound) const {
  if (count <= 0.0) return 0.0;
  Bucket lower;
  for (const Bucket& bucket : buckets) {
    if (bound < bucket.bound) {
      if (std::isinf(bucket.bound)) return lower.count / count;
      const double part =
          std::max(0.0, bound - lower.bound) / (bucket.bound - lower.bound);
      return (lower.count + part * (bucket.count - lower.count)) / count;
    }
    lower = bucket;
  }
  return 1.0;
}

bool Reading::is_active() const {
  const auto moved = [](std::optional<double> count) {
    return count.value_or(0.0) > 0.0;
  };
  const auto there = [](const std::optional<Level>& level) {
    return level.has_value() && level->before + level->after > 0.0;
  };
  return moved(prompt_tokens) || moved(generation_tokens) ||
         (ended.has_value() && ended->all() > 0.0) || there(running) ||
         there(waiting);
}

std::optional<double> Reading::per_second(std::optional<double> count) const {
  return ratio(count, elapsed);
}

std::optional<double> Reading::hit_rate() const {
  return ratio(prefix_hits, prefix_queries);
}

std::optional<double> Reading::hit_rate_before() const {
  return ratio(prefix_hits_before, prefix_queries_before);
}

}  // namespace vllm_metrics::doctor
