#pragma once

#include <string>
#include <string_view>

#include "vllm_metrics/stats/perf_breakdown.h"
#include "vllm_metrics/stats/perf_stats.h"

namespace vllm_metrics::inline v0 {

// The estimated work of the steps since the last MFU record.
class PerfLog {
 public:
  void observe(const PerfStats& stats);
  bool empty() const noexcept { return sums_.empty(); }
  void reset() noexcept;

  // `elapsed`: seconds since the last record of this kind.
  std::string text(std::string_view prefix, double elapsed) const;
  // The parts, as indented JSON.
  std::string details(std::string_view prefix, double elapsed) const;

 private:
  PerfStats sums_;
  PerfBreakdown breakdown_;
};

}  // namespace vllm_metrics::inline v0
