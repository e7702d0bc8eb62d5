#include "src/loggers/cuda_graph_log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <tuple>

namespace vllm_metrics::inline v0 {
namespace {

using Cells = std::array<std::string, 5>;

Cells headers() {
  return {"Unpadded Tokens", "Padded Tokens", "Num Paddings", "Runtime Mode",
          "Count"};
}

void append_row(std::string& out, const Cells& cells,
                const std::array<std::size_t, 5>& widths) {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    fmt::format_to(std::back_inserter(out), "| {:<{}} ", cells[i], widths[i]);
  }
  out += "|\n";
}

}  // namespace

std::size_t CudaGraphLog::mode_index(std::string_view mode) {
  const auto known = static_cast<std::size_t>(std::ranges::find(modes_, mode) -
                                              modes_.begin());
  if (known == modes_.size()) modes_.emplace_back(mode);
  return known;
}

void CudaGraphLog::observe(const CudaGraphStat& stat) {
  const Row row{
      stat.num_unpadded_tokens,      stat.num_padded_tokens, stat.num_paddings,
      mode_index(stat.runtime_mode), rows_.size(),           1};
  const auto kind = [](const Row& r) {
    return std::tuple(r.unpadded, r.padded, r.paddings, r.mode);
  };
  const auto at = std::ranges::lower_bound(rows_, kind(row), {}, kind);
  if (at != rows_.end() && kind(*at) == kind(row)) {
    ++at->count;
  } else {
    rows_.insert(at, row);
  }
}

std::string CudaGraphLog::text(const CudaGraphConfig& config) const {
  std::vector<Row> rows = rows_;
  std::ranges::sort(rows, {}, [](const Row& row) {
    return std::pair(-row.count, row.appeared);
  });

  std::vector<Cells> table{headers()};
  for (const Row& row : rows) {
    table.push_back({std::to_string(row.unpadded), std::to_string(row.padded),
                     std::to_string(row.paddings), modes_[row.mode],
                     std::to_string(row.count)});
  }
  std::array<std::size_t, 5> widths{};
  for (const Cells& cells : table) {
    for (std::size_t i = 0; i < widths.size(); ++i)
      widths[i] = std::max(widths[i], cells[i].size());
  }

  std::string out = fmt::format(
      "**CUDAGraph Config Settings:**\n\n- Mode: {}\n- Capture sizes: "
      "[{}]\n\n**CUDAGraph Stats:**\n\n",
      config.mode, fmt::join(config.capture_sizes, ", "));
  append_row(out, table.front(), widths);
  for (const std::size_t width : widths)
    fmt::format_to(std::back_inserter(out), "|{:-<{}}", "", width + 2);
  out += "|\n";
  for (std::size_t i = 1; i < table.size(); ++i)
    append_row(out, table[i], widths);
  return out;
}

}  // namespace vllm_metrics::inline v0
