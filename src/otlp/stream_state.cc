#include "src/otlp/stream_state.h"

#include <algorithm>
#include <bit>
#include <string>
#include <unordered_map>
#include <utility>

namespace vllm_metrics::inline v0::otlp {
namespace {

std::size_t word_count_of(const SchemaFamily& family, const Series& series) {
  return word_count(family.family.kind, series.bounds.get(),
                    series.native_buckets, series.exemplars);
}

// Two series with one key are the same stream.
std::string key_of(const SchemaFamily& family, const Series& series) {
  std::string key = family.family.name;
  const auto add = [&](std::string_view text) {
    key += '\0';
    key += text;
  };
  for (const Label& label : series.labels) {
    add(label.name);
    add(label.value);
  }
  add(std::to_string(std::bit_cast<std::uint64_t>(series.created)));
  add(std::to_string(word_count_of(family, series)));
  return key;
}

}  // namespace

bool fell(const Snapshot& snapshot, const SchemaFamily& family,
          const Series& series, std::span<const std::uint64_t> before) {
  const auto old = before.subspan(series.offset);
  switch (family.family.kind) {
    case MetricKind::kGauge:
      return false;
    case MetricKind::kCounter:
      return family.family.number == CounterNumber::kInteger
                 ? snapshot.integer(series) < old[0]
                 : snapshot.real(series) < std::bit_cast<double>(old[0]);
    case MetricKind::kHistogram:
      break;
  }
  const auto buckets = snapshot.buckets(series);
  for (std::size_t i = 0; i < buckets.size(); ++i)
    if (buckets[i] < old[i]) return true;
  return false;
}

void StreamState::align(const Snapshot& snapshot, double time) {
  if (snapshot.schema == schema_) return;
  struct Known {
    std::size_t offset;
    double start;
  };
  std::unordered_map<std::string, Known> known;
  if (schema_ != nullptr) {
    for_each_series(*schema_, [&](const SchemaFamily& family,
                                  const Series& series, std::size_t number) {
      known.emplace(key_of(family, series),
                    Known{series.offset, starts_[number]});
    });
  }
  std::vector<std::uint64_t> words(snapshot.words.size(), 0);
  std::vector<double> starts;
  for_each_series(*snapshot.schema, [&](const SchemaFamily& family,
                                        const Series& series, std::size_t) {
    const auto found = known.find(key_of(family, series));
    if (found == known.end()) {
      starts.push_back(std::min(begin_of(*snapshot.schema, series), time));
      return;
    }
    starts.push_back(found->second.start);
    std::copy_n(
        words_.begin() + static_cast<std::ptrdiff_t>(found->second.offset),
        word_count_of(family, series),
        words.begin() + static_cast<std::ptrdiff_t>(series.offset));
  });
  words_ = std::move(words);
  starts_ = std::move(starts);
  schema_ = snapshot.schema;
}

double StreamState::begin_of(const Schema& schema, const Series& series) const {
  if (series.created > 0.0) return series.created;
  return schema.since > 0.0 ? schema.since : time_;
}

// Of series that processes share, what was counted before is in the points of
// another exporter, or in nobody's.
void StreamState::begin(const Snapshot& snapshot, double time) {
  advance({.schema = std::make_shared<const Schema>(), .words = {}}, time);
  align(snapshot, time);
  for_each_series(*schema_, [&](const SchemaFamily& family,
                                const Series& series, std::size_t number) {
    if (series.created > 0.0) return;
    starts_[number] = time;
    std::copy_n(snapshot.words.begin() + series.offset,
                word_count_of(family, series), words_.begin() + series.offset);
  });
}

void StreamState::advance(const Snapshot& snapshot, double time) {
  align(snapshot, time);
  words_ = snapshot.words;
  starts_.assign(starts_.size(), time);
  time_ = time;
}

void StreamState::observe(const Snapshot& snapshot, double time) {
  align(snapshot, time);
  for_each_series(*schema_, [&](const SchemaFamily& family,
                                const Series& series, std::size_t number) {
    if (fell(snapshot, family, series, words_)) starts_[number] = time_;
  });
  words_ = snapshot.words;
  time_ = time;
}

}  // namespace vllm_metrics::inline v0::otlp
