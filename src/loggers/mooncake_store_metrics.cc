#include "vllm_metrics/loggers/mooncake_store_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>

#include "src/loggers/connector_families.h"
#include "src/loggers/duration_sample.h"
#include "src/loggers/python_text.h"
#include "vllm_metrics/catalogue/catalogue.h"
#include "vllm_metrics/stats/mooncake_store_stats.h"
#include "vllm_metrics/stats/saturating_add.h"

namespace vllm_metrics::inline v0 {
namespace {

using Call = MooncakeStoreStats::Call;

// Places in families(): the order of the catalogue; each family has one for
// each operation and status.
constexpr std::size_t kSeries = kMooncakeOperations * kMooncakeStatuses;
enum Family : std::size_t { kTime, kCalls, kKeys, kBytes, kFailedKeys };

bool is_known(const Call& call) {
  return static_cast<std::size_t>(call.operation) < kMooncakeOperations &&
         static_cast<std::size_t>(call.status) < kMooncakeStatuses;
}

std::size_t place(Family family, const Call& call) {
  return family * kSeries +
         static_cast<std::size_t>(call.operation) * kMooncakeStatuses +
         static_cast<std::size_t>(call.status);
}

// As Python's statistics of the record: the value at the nearest rank.
double nearest_rank(std::span<double> values, double q) {
  const double rank = q * static_cast<double>(values.size()) - 1e-12;
  const auto at = std::min(values.size() - 1,
                           static_cast<std::size_t>(std::max(rank, 0.0)));
  const auto nth = values.begin() + static_cast<std::ptrdiff_t>(at);
  std::nth_element(values.begin(), nth, values.end());
  return *nth;
}

class MooncakeLog final : public KvConnectorLog {
 public:
  explicit MooncakeLog(std::shared_ptr<Counter> sampled)
      : sampled_(std::move(sampled)) {}

  void observe(const KvConnectorStats& stats) override {
    for (const Call& call :
         static_cast<const MooncakeStoreStats&>(stats).calls) {
      if (!is_known(call)) continue;
      Operation& of = operations_[static_cast<std::size_t>(call.operation)];
      if (of.times.add(call.seconds)) sampled_->inc();
      ++of.calls;
      saturating_add_to(of.keys, call.num_keys);
      saturating_add_to(of.bytes, call.num_bytes);
      saturating_add_to(of.failed_keys, call.num_failed_keys);
      if (call.status == MooncakeStatus::kError) ++of.errors;
    }
  }

  void finish(std::string& out) override {
    const auto names = spec_of(MetricId::kMooncakeStoreOperation).extra_label;
    bool is_first = true;
    for (const MooncakeOperation operation : kByName) {
      Operation& of = operations_[static_cast<std::size_t>(operation)];
      if (of.calls == 0) continue;
      if (!std::exchange(is_first, false)) out += ", ";
      of.finish(out, names.values[static_cast<std::size_t>(operation)]);
    }
  }

 private:
  static constexpr std::array<MooncakeOperation, kMooncakeOperations> kByName{
      MooncakeOperation::kLoadGet, MooncakeOperation::kLookupExists,
      MooncakeOperation::kSaveExists, MooncakeOperation::kSavePut};

  struct Operation {
    DurationSample times{MooncakeStoreMetrics::kMaxExactCalls};
    std::uint64_t calls = 0;
    std::int64_t keys = 0;
    std::int64_t bytes = 0;
    std::int64_t failed_keys = 0;
    std::uint64_t errors = 0;

    void finish(std::string& out, std::string_view name) {
      const auto ms = [](double seconds) {
        return python_str(python_round(seconds * 1e3, 3));
      };
      const bool timed = times.count() != 0;
      const double mean =
          timed ? times.sum() / static_cast<double>(times.count()) : 0.0;
      const double p90 = timed ? nearest_rank(times.values(), 0.9) : 0.0;
      fmt::format_to(
          std::back_inserter(out),
          "{0}_count={1}, {0}_avg_ms={2}, {0}_p90_ms={3}, {0}_total_keys={4}, "
          "{0}_total_bytes={5}, {0}_failed_keys={6}, {0}_error_count={7}",
          name, calls, ms(mean), ms(p90), keys, bytes, failed_keys, errors);
      times.clear();
      calls = errors = 0;
      keys = bytes = failed_keys = 0;
    }
  };

  std::array<Operation, kMooncakeOperations> operations_;
  std::shared_ptr<Counter> sampled_;
};

}  // namespace

MooncakeStoreMetrics::MooncakeStoreMetrics()
    : sampled_(std::make_shared<Counter>()) {}
MooncakeStoreMetrics::~MooncakeStoreMetrics() = default;

std::vector<StepMetrics::Metric> MooncakeStoreMetrics::families() const {
  return families_of_connector(connector());
}

void MooncakeStoreMetrics::record(const KvConnectorStats& stats,
                                  StepWriter& writer) const {
  for (const Call& call : static_cast<const MooncakeStoreStats&>(stats).calls) {
    if (!is_known(call)) {
      writer.inc(SIZE_MAX);  // counted as a metric that does not exist
      continue;
    }
    writer.observe(place(kTime, call), call.seconds);
    writer.inc(place(kCalls, call));
    writer.inc(place(kKeys, call), call.num_keys);
    writer.inc(place(kBytes, call), call.num_bytes);
    writer.inc(place(kFailedKeys, call), call.num_failed_keys);
  }
}

std::unique_ptr<KvConnectorLog> MooncakeStoreMetrics::make_log() const {
  return std::make_unique<MooncakeLog>(sampled_);
}

}  // namespace vllm_metrics::inline v0
