#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "src/tools/sim/virtual_time.h"

namespace vllm_metrics::sim {

// All values of a latency, for exact quantiles. Virtual time comes in ticks, so
// equal values are many, and counting them takes little room however long the
// run.
class LatencyTally {
 public:
  struct Entry {
    Ticks value;
    std::uint64_t count;
  };

  void add(Ticks value, std::uint64_t count = 1);

  std::uint64_t count() const { return count_; }
  double mean_seconds() const;  // 0 when empty

  // The smallest value that at least `q` (0 to 1) of all values do not exceed,
  // in seconds; 0 when empty. This is the value whose bucket PromQL's
  // histogram_quantile() comes from.
  double quantile_seconds(double q) const;

  // In rising order.
  std::vector<Entry> sorted() const;

 private:
  absl::flat_hash_map<Ticks, std::uint64_t> counts_;
  std::uint64_t count_ = 0;
  double sum_ = 0.0;  // ticks
};

}  // namespace vllm_metrics::sim
