#include "vllm_metrics/exposition/page_snapshot.h"

#include <bit>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "src/exposition/page_faults.h"

namespace vllm_metrics::inline v0 {
namespace {

absl::Status refused(const PageFamily& family, std::string_view why) {
  return absl::InvalidArgumentError(message("family ", family.name, why));
}

absl::Status add_buckets(const PageFamily& family, const PageSeries& from,
                         Series& series, std::vector<std::uint64_t>& words) {
  std::vector<double> bounds;
  double before = 0.0;
  for (const PageBucket& bucket : from.buckets) {
    const double gained = bucket.count - before;
    if (!(gained >= 0.0 && gained < 0x1p64) || gained != std::floor(gained)) {
      return refused(family,
                     " has a bucket that is not whole or below the one before "
                     "it; allowed: whole numbers, cumulative");
    }
    words.push_back(static_cast<std::uint64_t>(gained));
    bounds.push_back(bucket.bound);
    before = bucket.count;
  }
  if (bounds.size() < 2 || !std::isinf(bounds.back())) {
    return refused(family,
                   " lacks a finite bucket or le=\"+Inf\"; allowed: at least "
                   "one, and +Inf");
  }
  bounds.pop_back();
  auto checked = BucketBounds::create(bounds);
  if (!checked) {
    return refused(family, " has bounds that do not ascend");
  }
  series.bounds = std::make_shared<const BucketBounds>(*std::move(checked));
  words.push_back(std::bit_cast<std::uint64_t>(from.sum.value_or(0.0)));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Snapshot> snapshot_of(const Page& page) {
  auto schema = std::make_shared<Schema>();
  Snapshot snapshot;
  for (const PageFamily& family : page.families) {
    SchemaFamily& added = schema->families.emplace_back();
    added.family.name = family.name;
    added.family.help = family.help;
    added.family.unit = family.unit;
    added.family.number = CounterNumber::kReal;
    switch (family.kind) {
      case PageKind::kCounter:
        added.family.kind = MetricKind::kCounter;
        break;
      case PageKind::kGauge:
        added.family.kind = MetricKind::kGauge;
        break;
      case PageKind::kHistogram:
        added.family.kind = MetricKind::kHistogram;
        break;
      default:
        return refused(family, message(" is of type ", name_of(family.kind),
                                       "; allowed: counter, gauge, histogram"));
    }
    added.family = normalized(std::move(added.family));
    for (const PageSeries& from : family.series) {
      Series& series = added.series.emplace_back();
      Labels labels;
      for (const PageLabel& label : from.labels)
        labels.push_back({std::string(label.name), std::string(label.value)});
      series.labels = std::move(labels);
      series.offset = static_cast<std::uint32_t>(snapshot.words.size());
      series.created = from.created.value_or(0.0);
      if (family.kind != PageKind::kHistogram) {
        snapshot.words.push_back(std::bit_cast<std::uint64_t>(from.value));
        continue;
      }
      const absl::Status status =
          add_buckets(family, from, series, snapshot.words);
      if (!status.ok()) return status;
    }
  }
  schema->word_count = snapshot.words.size();
  snapshot.schema = std::move(schema);
  return snapshot;
}

}  // namespace vllm_metrics::inline v0
