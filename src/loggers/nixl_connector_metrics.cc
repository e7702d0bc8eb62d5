#include "vllm_metrics/loggers/nixl_connector_metrics.h"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <string>
#include <utility>

#include "src/loggers/connector_families.h"
#include "src/loggers/duration_sample.h"
#include "src/loggers/python_text.h"
#include "src/loggers/sum_and_quantile.h"
#include "vllm_metrics/catalogue/catalogue.h"
#include "vllm_metrics/stats/nixl_stats.h"

namespace vllm_metrics::inline v0 {
namespace {

// Place of each family in families(): the order of the catalogue.
std::size_t place(MetricId id) {
  return static_cast<std::size_t>(id) -
         static_cast<std::size_t>(MetricId::kNixlXferTime);
}

double sum_of(const DurationSample& durations) {
  return durations.is_complete() ? pairwise_sum(durations.values())
                                 : durations.sum();
}

class NixlLog final : public KvConnectorLog {
 public:
  explicit NixlLog(std::shared_ptr<Counter> sampled)
      : sampled_(std::move(sampled)) {}

  void observe(const KvConnectorStats& stats) override {
    const auto& nixl = static_cast<const NixlStats&>(stats);
    for (const double seconds : nixl.transfer_duration) {
      if (transfer_.add(seconds)) sampled_->inc();
    }
    for (const double seconds : nixl.post_duration) post_.add(seconds);
    for (const auto bytes : nixl.bytes_transferred)
      bytes_ += static_cast<double>(bytes);
    for (const auto descriptors : nixl.num_descriptors)
      descriptors_ += static_cast<double>(descriptors);
  }

  void finish(std::string& out) override;

 private:
  DurationSample transfer_{NixlConnectorMetrics::kMaxExactTransfers};
  DurationSample post_{NixlConnectorMetrics::kMaxExactTransfers};
  double bytes_ = 0.0;
  double descriptors_ = 0.0;
  std::shared_ptr<Counter> sampled_;
};

void NixlLog::finish(std::string& out) {
  const auto n = static_cast<double>(transfer_.count());
  const auto number = [&](double v, int digits) {
    return transfer_.count() == 0 ? std::string("0")
                                  : python_str(python_round(v, digits));
  };
  const auto mean_ms = [&](const DurationSample& durations) {
    const auto count = static_cast<double>(durations.count());
    return durations.count() == 0 ? std::string("0")
                                  : number(sum_of(durations) / count * 1e3, 3);
  };
  const auto p90_ms = [&](DurationSample& durations) {
    return durations.count() == 0
               ? std::string("0")
               : number(quantile(durations.values(), 0.9) * 1e3, 3);
  };
  const double megabytes = bytes_ / (1024.0 * 1024.0);
  // The mean before P90, which reorders the values.
  const std::string transfer_mean = mean_ms(transfer_);
  const std::string post_mean = mean_ms(post_);
  fmt::format_to(std::back_inserter(out),
                 "Num successful transfers={}, Avg xfer time (ms)={}, P90 xfer "
                 "time (ms)={}, Avg post time (ms)={}, "
                 "P90 post time (ms)={}, Avg MB per transfer={}, Throughput "
                 "(MB/s)={}, Avg number of descriptors={}",
                 transfer_.count(), transfer_mean, p90_ms(transfer_), post_mean,
                 p90_ms(post_), number(megabytes / n, 3),
                 number(megabytes / sum_of(transfer_), 3),
                 number(descriptors_ / n, 1));
  transfer_.clear();
  post_.clear();
  bytes_ = descriptors_ = 0.0;
}

}  // namespace

NixlConnectorMetrics::NixlConnectorMetrics()
    : sampled_(std::make_shared<Counter>()) {}
NixlConnectorMetrics::~NixlConnectorMetrics() = default;

std::vector<StepMetrics::Metric> NixlConnectorMetrics::families() const {
  return families_of_connector(connector());
}

void NixlConnectorMetrics::record(const KvConnectorStats& stats,
                                  StepWriter& writer) const {
  const auto& nixl = static_cast<const NixlStats&>(stats);
  writer.observe(place(MetricId::kNixlXferTime), nixl.transfer_duration);
  writer.observe(place(MetricId::kNixlPostTime), nixl.post_duration);
  for (const auto bytes : nixl.bytes_transferred) {
    writer.observe(place(MetricId::kNixlBytesTransferred),
                   static_cast<double>(bytes));
  }
  for (const auto descriptors : nixl.num_descriptors) {
    writer.observe(place(MetricId::kNixlNumDescriptors),
                   static_cast<double>(descriptors));
  }
  for (const auto n : nixl.num_failed_transfers)
    writer.inc(place(MetricId::kNixlNumFailedTransfers), n);
  for (const auto n : nixl.num_failed_notifications)
    writer.inc(place(MetricId::kNixlNumFailedNotifications), n);
  for (const auto n : nixl.num_kv_expired_reqs)
    writer.inc(place(MetricId::kNixlNumKvExpiredReqs), n);
  for (const auto n : nixl.num_notifications_after_expiry)
    writer.inc(place(MetricId::kNixlNumNotificationsAfterExpiry), n);
}

std::unique_ptr<KvConnectorLog> NixlConnectorMetrics::make_log() const {
  return std::make_unique<NixlLog>(sampled_);
}

}  // namespace vllm_metrics::inline v0
