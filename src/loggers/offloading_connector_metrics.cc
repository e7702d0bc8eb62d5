#include "vllm_metrics/loggers/offloading_connector_metrics.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>

#include "src/loggers/connector_families.h"
#include "src/loggers/python_text.h"
#include "vllm_metrics/catalogue/catalogue.h"
#include "vllm_metrics/stats/offloading_stats.h"
#include "vllm_metrics/stats/saturating_add.h"

namespace vllm_metrics::inline v0 {
namespace {

// Places in families(): the order of the catalogue, the deprecated families
// with one place for loads and one for stores.
enum Place : std::size_t {
  kLoadBytes,
  kLoadTime,
  kLoadSize,
  kStoreBytes,
  kStoreTime,
  kStoreSize,
  kLookupSyncDelay,
  kLookupAsyncDelay,
  kAllocationFailure,
  kTotalBytes,
  kTotalTime = kTotalBytes + 2,
  kSize = kTotalTime + 2,
  kUsage = kSize + 2,
  kWriteUsage,
  kReadUsage,
  kStoresSkipped,  // last: not on every page
};

// Where one direction goes: its own families, and its half of the old ones.
struct Direction {
  std::size_t first;     // of bytes, time and size
  std::size_t old_half;  // 0 or 1
};
constexpr Direction kLoads{kLoadBytes, 0};
constexpr Direction kStores{kStoreBytes, 1};

void write(const OffloadTransfers& transfers, Direction direction,
           StepWriter& writer) {
  if (transfers.empty()) return;
  for (const std::size_t bytes :
       {direction.first, kTotalBytes + direction.old_half})
    writer.inc(bytes, transfers.bytes);
  for (const std::size_t time :
       {direction.first + 1, kTotalTime + direction.old_half})
    writer.inc(time, transfers.time);
  for (const std::int64_t size : transfers.sizes) {
    writer.observe(direction.first + 2, static_cast<double>(size));
    writer.observe(kSize + direction.old_half, static_cast<double>(size));
  }
}

// Sums of an interval. Values that the page refuses are left out here, too.
class OffloadingLog final : public KvConnectorLog {
 public:
  void observe(const KvConnectorStats& stats) override {
    const auto& offload = static_cast<const OffloadingStats&>(stats);
    load_.add(offload.load);
    store_.add(offload.store);
    for (const double seconds : offload.lookup_sync_delays) sync_.add(seconds);
    for (const double seconds : offload.lookup_async_delays)
      async_.add(seconds);
    saturating_add_to(allocation_failures_, offload.num_allocation_failures);
    saturating_add_to(stores_skipped_, offload.num_stores_skipped);
    if (offload.cpu_cache_write_usage.has_value())
      write_usage_ = offload.cpu_cache_write_usage;
    if (offload.cpu_cache_read_usage.has_value())
      read_usage_ = offload.cpu_cache_read_usage;
  }

  void finish(std::string& out) override {
    Pairs pairs{out};
    load_.finish(pairs, MetricId::kKvOffloadLoadBytes);
    store_.finish(pairs, MetricId::kKvOffloadStoreBytes);
    sync_.finish(pairs, MetricId::kKvOffloadLookupSyncDelay);
    async_.finish(pairs, MetricId::kKvOffloadLookupAsyncDelay);
    if (allocation_failures_ != 0)
      pairs.add(MetricId::kKvOffloadAllocationFailure, "",
                allocation_failures_);
    if (write_usage_.has_value() || read_usage_.has_value()) {
      const double writes = write_usage_.value_or(0.0);
      const double reads = read_usage_.value_or(0.0);
      pairs.add(MetricId::kKvOffloadCpuCacheUsagePerc, "",
                python_str(writes + reads));
      pairs.add(MetricId::kKvOffloadCpuCacheWriteUsagePerc, "",
                python_str(writes));
      pairs.add(MetricId::kKvOffloadCpuCacheReadUsagePerc, "",
                python_str(reads));
    }
    if (stores_skipped_ != 0)
      pairs.add(MetricId::kKvOffloadStoresSkipped, "", stores_skipped_);
    *this = OffloadingLog();
  }

 private:
  // `key=value` pairs, a key being a family's name and a suffix.
  struct Pairs {
    template <class Value>
    void add(MetricId id, std::string_view suffix, const Value& value) {
      fmt::format_to(std::back_inserter(out), "{}{}{}={}",
                     std::exchange(is_first, false) ? "" : ", ",
                     spec_of(id).name, suffix, value);
    }
    std::string& out;
    bool is_first = true;
  };

  struct Transfers {
    void add(const OffloadTransfers& transfers) {
      saturating_add_to(bytes, transfers.bytes);
      if (std::isfinite(transfers.time)) time += transfers.time;
      for (const std::int64_t size : transfers.sizes) {
        ++count;
        saturating_add_to(sum, size);
      }
    }
    // `bytes_id` is followed by those of the time and of the size.
    void finish(Pairs& pairs, MetricId bytes_id) const {
      if (bytes == 0 && time == 0.0 && count == 0) return;
      const auto after = [bytes_id](int n) {
        return static_cast<MetricId>(static_cast<int>(bytes_id) + n);
      };
      pairs.add(bytes_id, "", bytes);
      pairs.add(after(1), "", python_str(time));
      if (count == 0) return;
      pairs.add(after(2), "_count", count);
      pairs.add(after(2), "_sum", sum);
    }
    std::int64_t bytes = 0;
    double time = 0.0;
    std::uint64_t count = 0;
    std::int64_t sum = 0;
  };

  struct Delays {
    void add(double seconds) {
      if (!std::isfinite(seconds)) return;
      ++count;
      sum += seconds;
    }
    void finish(Pairs& pairs, MetricId id) const {
      if (count == 0) return;
      pairs.add(id, "_count", count);
      pairs.add(id, "_sum", python_str(sum));
    }
    std::uint64_t count = 0;
    double sum = 0.0;
  };

  Transfers load_;
  Transfers store_;
  Delays sync_;
  Delays async_;
  std::int64_t allocation_failures_ = 0;
  std::int64_t stores_skipped_ = 0;
  std::optional<double> write_usage_;
  std::optional<double> read_usage_;
};

}  // namespace

OffloadingConnectorMetrics::OffloadingConnectorMetrics(OffloadingSetup setup)
    : setup_(setup) {}
OffloadingConnectorMetrics::~OffloadingConnectorMetrics() = default;

std::vector<StepMetrics::Metric> OffloadingConnectorMetrics::families() const {
  auto metrics = families_of_connector(connector());
  if (setup_.store_threshold < 2) metrics.pop_back();
  return metrics;
}

void OffloadingConnectorMetrics::record(const KvConnectorStats& stats,
                                        StepWriter& writer) const {
  const auto& offload = static_cast<const OffloadingStats&>(stats);
  write(offload.load, kLoads, writer);
  write(offload.store, kStores, writer);
  writer.observe(kLookupSyncDelay, offload.lookup_sync_delays);
  writer.observe(kLookupAsyncDelay, offload.lookup_async_delays);
  writer.inc(kAllocationFailure, offload.num_allocation_failures);
  const auto& writes = offload.cpu_cache_write_usage;
  const auto& reads = offload.cpu_cache_read_usage;
  if (writes.has_value()) writer.set(kWriteUsage, *writes);
  if (reads.has_value()) writer.set(kReadUsage, *reads);
  if (writes.has_value() || reads.has_value())
    writer.set(kUsage, writes.value_or(0.0) + reads.value_or(0.0));
  if (offload.num_stores_skipped != 0)
    writer.inc(kStoresSkipped, offload.num_stores_skipped);
}

std::unique_ptr<KvConnectorLog> OffloadingConnectorMetrics::make_log() const {
  return std::make_unique<OffloadingLog>();
}

}  // namespace vllm_metrics::inline v0
