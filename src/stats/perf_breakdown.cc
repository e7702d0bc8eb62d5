#include "vllm_metrics/stats/perf_breakdown.h"

#include <algorithm>
#include <cstddef>

namespace vllm_metrics::inline v0 {
namespace {

void add_parts(std::vector<PerfBreakdown::Part>& parts,
               const std::vector<PerfBreakdown::Part>& more) {
  for (std::size_t i = 0; i < more.size(); ++i) {
    // Steps of one model have the same parts, nearly always in one order.
    auto same = parts.end();
    if (i < parts.size() && parts[i].name == more[i].name) {
      same = parts.begin() + static_cast<std::ptrdiff_t>(i);
    } else {
      same = std::find_if(parts.begin(), parts.end(), [&](const auto& part) {
        return part.name == more[i].name;
      });
    }
    if (same == parts.end()) {
      parts.push_back(more[i]);
    } else {
      same->value += more[i].value;
    }
  }
}

}  // namespace

void PerfBreakdown::add(const PerfBreakdown& other) {
  num_batches += other.num_batches;
  context.merge(other.context);
  add_parts(flops, other.flops);
  add_parts(read_bytes, other.read_bytes);
  add_parts(write_bytes, other.write_bytes);
  calculation_seconds += other.calculation_seconds;
}

void PerfBreakdown::clear() noexcept {
  num_batches = 0;
  context = {};
  flops.clear();
  read_bytes.clear();
  write_bytes.clear();
  calculation_seconds = 0.0;
}

}  // namespace vllm_metrics::inline v0
