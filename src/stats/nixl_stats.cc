#include "vllm_metrics/stats/nixl_stats.h"

namespace vllm_metrics::inline v0 {
namespace {

constexpr double kMicrosecondsPerSecond = 1e6;

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

void NixlStats::record_transfer(double transfer_us, double post_us,
                                std::int64_t bytes, std::int64_t descriptors) {
  transfer_duration.push_back(transfer_us / kMicrosecondsPerSecond);
  post_duration.push_back(post_us / kMicrosecondsPerSecond);
  bytes_transferred.push_back(bytes);
  num_descriptors.push_back(descriptors);
}

void NixlStats::aggregate(const NixlStats& other) {
  append(transfer_duration, other.transfer_duration);
  append(post_duration, other.post_duration);
  append(bytes_transferred, other.bytes_transferred);
  append(num_descriptors, other.num_descriptors);
  append(num_failed_transfers, other.num_failed_transfers);
  append(num_failed_notifications, other.num_failed_notifications);
  append(num_kv_expired_reqs, other.num_kv_expired_reqs);
  append(num_notifications_after_expiry, other.num_notifications_after_expiry);
}

void NixlStats::reset() noexcept {
  transfer_duration.clear();
  post_duration.clear();
  bytes_transferred.clear();
  num_descriptors.clear();
  num_failed_transfers.clear();
  num_failed_notifications.clear();
  num_kv_expired_reqs.clear();
  num_notifications_after_expiry.clear();
}

bool NixlStats::empty() const noexcept {
  return transfer_duration.empty() && num_failed_transfers.empty() &&
         num_failed_notifications.empty() && num_kv_expired_reqs.empty() &&
         num_notifications_after_expiry.empty();
}

}  // namespace vllm_metrics::inline v0
