#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "vllm_metrics/export.h"
#include "vllm_metrics/stats/kv_connector_stats.h"

namespace vllm_metrics::inline v0 {

// What became of a block that came up for offloading, label `outcome`.
enum class SaveOutcome : std::uint8_t {
  kStored,
  kDroppedCpuFull,
  kDroppedRequestGone,
  kDroppedNullBlock,
  kDroppedNotHashed,
  kSkippedAlreadyCached,
  kSkippedInFlight,
};
inline constexpr std::size_t kSaveOutcomeCount = 7;

// What the simple CPU offloading connector did in one step. Counts are deltas
// of the step, the two gauges the state after it.
//
// Definition: vLLM SimpleCPUOffloadStats.
class VLLM_METRICS_EXPORT SimpleOffloadStats final : public KvConnectorStats {
 public:
  std::array<std::int64_t, kSaveOutcomeCount> save_outcomes = {};  // blocks
  std::int64_t num_load_blocks_issued = 0;
  std::int64_t num_load_blocks_completed = 0;
  std::optional<std::int64_t> used_blocks = {};  // none: as before
  std::optional<std::int64_t> pending_store_blocks = {};

  void record_save(SaveOutcome outcome, std::int64_t blocks = 1) noexcept;

  // Adds what another one says; its gauges, where it has them, are newer.
  void aggregate(const SimpleOffloadStats& other) noexcept;

  void reset() noexcept { *this = {}; }

  std::string_view connector() const noexcept override {
    return "simple_offload";
  }
  bool empty() const noexcept override;
};

}  // namespace vllm_metrics::inline v0
