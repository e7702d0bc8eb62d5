#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "vllm_metrics/export.h"
#include "vllm_metrics/stats/kv_connector_stats.h"

namespace vllm_metrics::inline v0 {

// KV transfers through NIXL in one step: a row of the first four lists is one
// successful transfer. Each worker fills its own; aggregate() makes one of
// them.
//
// Definition: vLLM NixlKVConnectorStats; its clock counts microseconds, here
// times are seconds.
class VLLM_METRICS_EXPORT NixlStats final : public KvConnectorStats {
 public:
  std::vector<double> transfer_duration = {};  // seconds
  std::vector<double> post_duration = {};      // seconds to post the transfer
  std::vector<std::int64_t> bytes_transferred = {};
  std::vector<std::int64_t> num_descriptors = {};
  // One entry per event, or a count of several.
  std::vector<std::int64_t> num_failed_transfers = {};
  std::vector<std::int64_t> num_failed_notifications = {};
  std::vector<std::int64_t> num_kv_expired_reqs = {};
  std::vector<std::int64_t> num_notifications_after_expiry = {};

  // One successful transfer, as NIXL's telemetry tells it.
  void record_transfer(double transfer_us, double post_us, std::int64_t bytes,
                       std::int64_t descriptors);
  void record_failed_transfer() { num_failed_transfers.push_back(1); }
  void record_failed_notification() { num_failed_notifications.push_back(1); }
  void record_kv_expired_req() { num_kv_expired_reqs.push_back(1); }
  void record_notification_after_expiry() {
    num_notifications_after_expiry.push_back(1);
  }

  // Appends what another worker did.
  void aggregate(const NixlStats& other);

  // Ready for the next step; keeps its storage.
  void reset() noexcept;

  std::string_view connector() const noexcept override { return "nixl"; }
  bool empty() const noexcept override;
};

}  // namespace vllm_metrics::inline v0
