#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "vllm_metrics/export.h"
#include "vllm_metrics/stats/kv_connector_stats.h"

namespace vllm_metrics::inline v0 {

// Transfers of one direction in one step.
struct OffloadTransfers {
  std::int64_t bytes = 0;
  double time = 0.0;                     // seconds, added up
  std::vector<std::int64_t> sizes = {};  // bytes, one entry per transfer

  void record(std::int64_t size, double seconds);
  void aggregate(const OffloadTransfers& other);
  void reset() noexcept;
  bool empty() const noexcept {
    return bytes == 0 && time == 0.0 && sizes.empty();
  }
};

// What the offloading connector did in one step: KV blocks that left the GPU
// and came back, and the scheduler's lookups. Each worker fills its own;
// aggregate() makes one of them.
//
// Definition: vLLM OffloadingConnectorStats.
class VLLM_METRICS_EXPORT OffloadingStats final : public KvConnectorStats {
 public:
  OffloadTransfers load = {};                   // to the GPU
  OffloadTransfers store = {};                  // from the GPU
  std::vector<double> lookup_sync_delays = {};  // seconds in one lookup
  // Seconds from a request's first lookup without an answer to the answer.
  std::vector<double> lookup_async_delays = {};
  std::int64_t num_allocation_failures = 0;  // stores that found no room
  // Stores left out, since what they held was not asked for often enough.
  std::int64_t num_stores_skipped = 0;
  // Share of the CPU's KV blocks held by stores that have not ended, and by
  // loads, 0..1; none: as before.
  std::optional<double> cpu_cache_write_usage = {};
  std::optional<double> cpu_cache_read_usage = {};

  void record_load(std::int64_t bytes, double seconds) {
    load.record(bytes, seconds);
  }
  void record_store(std::int64_t bytes, double seconds) {
    store.record(bytes, seconds);
  }
  void record_lookup(double seconds) { lookup_sync_delays.push_back(seconds); }
  void record_deferred_lookup(double seconds) {
    lookup_async_delays.push_back(seconds);
  }
  void record_allocation_failure() noexcept { ++num_allocation_failures; }

  // Adds what another worker did; its shares, where it has them, are newer.
  void aggregate(const OffloadingStats& other);

  // Ready for the next step; keeps its storage.
  void reset() noexcept;

  std::string_view connector() const noexcept override { return "offloading"; }
  bool empty() const noexcept override;
};

}  // namespace vllm_metrics::inline v0
