#include "vllm_metrics/loggers/nixl_connector_metrics.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <utility>

#include "src/loggers/connector_families.h"
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

// Durations of an interval: all of them, or a uniform sample once there are
// more than fit.
class Durations {
 public:
  // True when a value had to be left to chance. One that is not finite is
  // dropped, as on the page: it has no place in an order.
  bool add(double seconds) {
    if (!std::isfinite(seconds)) return false;
    if (values_.capacity() == 0)
      values_.reserve(NixlConnectorMetrics::kMaxExactTransfers);
    sum_ += seconds;
    ++count_;
    if (values_.size() < NixlConnectorMetrics::kMaxExactTransfers) {
      values_.push_back(seconds);
      return false;
    }
    const auto at =
        std::uniform_int_distribution<std::uint64_t>(0, count_ - 1)(random_);
    if (at < values_.size()) values_[at] = seconds;
    return true;
  }
  std::uint64_t count() const { return count_; }
  double sum() const {
    return count_ == values_.size() ? pairwise_sum(values_) : sum_;
  }
  double p90() { return quantile(values_, 0.9); }
  void clear() {
    values_.clear();
    count_ = 0;
    sum_ = 0.0;
  }

 private:
  std::vector<double> values_;
  std::uint64_t count_ = 0;
  double sum_ = 0.0;
  std::minstd_rand random_;  // any sequence will do, and the same every time
};

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
  Durations transfer_;
  Durations post_;
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
  const auto mean_ms = [&](const Durations& durations) {
    const auto count = static_cast<double>(durations.count());
    return durations.count() == 0 ? std::string("0")
                                  : number(durations.sum() / count * 1e3, 3);
  };
  const auto p90_ms = [&](Durations& durations) {
    return durations.count() == 0 ? std::string("0")
                                  : number(durations.p90() * 1e3, 3);
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
                 number(megabytes / transfer_.sum(), 3),
                 number(descriptors_ / n, 1));
  transfer_.clear();
  post_.clear();
  bytes_ = descriptors_ = 0.0;
}

}  // namespace

KvConnectorLog::~KvConnectorLog() = default;
KvConnectorMetrics::~KvConnectorMetrics() = default;

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
}

std::unique_ptr<KvConnectorLog> NixlConnectorMetrics::make_log() const {
  return std::make_unique<NixlLog>(sampled_);
}

}  // namespace vllm_metrics::inline v0
