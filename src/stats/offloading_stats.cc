#include "vllm_metrics/stats/offloading_stats.h"

#include "vllm_metrics/stats/saturating_add.h"

namespace vllm_metrics::inline v0 {
namespace {

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

void OffloadTransfers::record(std::int64_t size, double seconds) {
  saturating_add_to(bytes, size);
  time += seconds;
  sizes.push_back(size);
}

void OffloadTransfers::aggregate(const OffloadTransfers& other) {
  saturating_add_to(bytes, other.bytes);
  time += other.time;
  append(sizes, other.sizes);
}

void OffloadTransfers::reset() noexcept {
  bytes = 0;
  time = 0.0;
  sizes.clear();
}

void OffloadingStats::aggregate(const OffloadingStats& other) {
  load.aggregate(other.load);
  store.aggregate(other.store);
  append(lookup_sync_delays, other.lookup_sync_delays);
  append(lookup_async_delays, other.lookup_async_delays);
  saturating_add_to(num_allocation_failures, other.num_allocation_failures);
  saturating_add_to(num_stores_skipped, other.num_stores_skipped);
  if (other.cpu_cache_write_usage.has_value())
    cpu_cache_write_usage = other.cpu_cache_write_usage;
  if (other.cpu_cache_read_usage.has_value())
    cpu_cache_read_usage = other.cpu_cache_read_usage;
}

void OffloadingStats::reset() noexcept {
  load.reset();
  store.reset();
  lookup_sync_delays.clear();
  lookup_async_delays.clear();
  num_allocation_failures = 0;
  num_stores_skipped = 0;
  cpu_cache_write_usage.reset();
  cpu_cache_read_usage.reset();
}

bool OffloadingStats::empty() const noexcept {
  return load.empty() && store.empty() && lookup_sync_delays.empty() &&
         lookup_async_delays.empty() && num_allocation_failures == 0 &&
         num_stores_skipped == 0 && !cpu_cache_write_usage.has_value() &&
         !cpu_cache_read_usage.has_value();
}

}  // namespace vllm_metrics::inline v0
