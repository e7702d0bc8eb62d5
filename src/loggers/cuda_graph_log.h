#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "vllm_metrics/loggers/options.h"
#include "vllm_metrics/stats/cuda_graph_stats.h"

namespace vllm_metrics::inline v0 {

// How steps were padded and run since the last table: one row for each kind of
// step. Rows keep their storage.
class CudaGraphLog {
 public:
  void observe(const CudaGraphStat& stat);
  bool empty() const noexcept { return rows_.empty(); }
  void reset() noexcept { rows_.clear(); }

  // The configuration and the table, rows by falling count, equal counts in
  // order of appearance.
  std::string text(const CudaGraphConfig& config) const;

 private:
  struct Row {
    std::int64_t unpadded = 0;
    std::int64_t padded = 0;
    std::int64_t paddings = 0;
    std::size_t mode = 0;  // index into modes_
    std::size_t appeared = 0;
    std::int64_t count = 0;
  };
  std::size_t mode_index(std::string_view mode);

  std::vector<std::string> modes_;
  std::vector<Row> rows_;  // sorted by what tells them apart
};

}  // namespace vllm_metrics::inline v0
