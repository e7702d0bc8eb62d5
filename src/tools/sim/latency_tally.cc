#include "src/tools/sim/latency_tally.h"

#include <algorithm>
#include <cmath>

namespace vllm_metrics::sim {

void LatencyTally::add(Ticks value, std::uint64_t count) {
  counts_[value] += count;
  count_ += count;
  sum_ += static_cast<double>(value) * static_cast<double>(count);
}

double LatencyTally::mean_seconds() const {
  if (count_ == 0) return 0.0;
  return sum_ / static_cast<double>(count_) /
         static_cast<double>(kTicksPerSecond);
}

double LatencyTally::quantile_seconds(double q) const {
  const double rank = std::max(1.0, std::ceil(q * static_cast<double>(count_)));
  double below = 0.0;
  for (const Entry& entry : sorted()) {
    below += static_cast<double>(entry.count);
    if (below >= rank) return to_seconds(entry.value);
  }
  return 0.0;
}

std::vector<LatencyTally::Entry> LatencyTally::sorted() const {
  std::vector<Entry> entries;
  entries.reserve(counts_.size());
  for (const auto& [value, count] : counts_) entries.push_back({value, count});
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.value < b.value; });
  return entries;
}

}  // namespace vllm_metrics::sim
