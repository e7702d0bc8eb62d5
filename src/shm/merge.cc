#include "src/shm/merge.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "vllm_metrics/primitives/native_words.h"
#include "vllm_metrics/registry/native_histogram.h"

namespace vllm_metrics::inline v0::shm {
namespace {

bool is_live_only(GaugeMode mode) {
  return mode == GaugeMode::kLiveSum || mode == GaugeMode::kLiveAll;
}

bool is_of_each_process(GaugeMode mode) {
  return mode == GaugeMode::kAll || mode == GaugeMode::kLiveAll;
}

// Whether a source has a say in the family.
bool counts(const Source& source, const Family& family) {
  return family.kind != MetricKind::kGauge || !is_live_only(family.mode) ||
         source.standing == Standing::kLive;
}

bool fit_together(const Family& a, const Family& b) {
  return a.kind == b.kind && a.number == b.number && a.mode == b.mode &&
         a.info == b.info;
}

LabelSet labels_in(const Source& source, const Family& family,
                   const LabelSet& labels) {
  if (family.kind != MetricKind::kGauge || !is_of_each_process(family.mode) ||
      source.standing == Standing::kFolded)
    return labels;
  Labels with_pid = labels;
  std::erase_if(with_pid, [](const Label& one) { return one.name == "pid"; });
  with_pid.push_back({"pid", std::to_string(source.pid)});
  return normalized(std::move(with_pid));
}

// Equal for equal series only: 0xFF and 0xFE are in no valid UTF-8.
std::string key_of(const std::string& family, const LabelSet& labels) {
  std::string key = family;
  for (const Label& label : labels)
    key.append("\xFF").append(label.name).append("\xFE").append(label.value);
  return key;
}

// The bounds of both; null: there are none.
std::shared_ptr<const BucketBounds> common(
    const std::shared_ptr<const BucketBounds>& a,
    const std::shared_ptr<const BucketBounds>& b) {
  if (a == b || *a == *b) return a;
  std::vector<double> both;
  std::ranges::set_intersection(a->values(), b->values(),
                                std::back_inserter(both));
  auto checked = BucketBounds::create(both);
  if (!checked.has_value()) return nullptr;
  return std::make_shared<const BucketBounds>(*std::move(checked));
}

double real(std::uint64_t cell) { return std::bit_cast<double>(cell); }
std::uint64_t cell(double value) { return std::bit_cast<std::uint64_t>(value); }

// Adds `value` + `low` to the sum of `high` and `lost`, which stays the
// nearest double and what it lost (Knuth's two-sum).
void add_exactly(std::uint64_t& high, double& lost, double value, double low) {
  const double a = real(high);
  const double sum = a + value;
  if (!std::isfinite(sum)) {
    high = cell(sum);
    lost = 0.0;
    return;
  }
  const double part = sum - a;
  const double rest = (a - (sum - part)) + (value - part) + (lost + low);
  const double rounded = sum + rest;
  high = cell(rounded);
  lost = rest - (rounded - sum);
}

// Where a histogram's native buckets lie, and how many cells they are; its
// exemplars follow.
std::uint32_t native_cell_of(const Series& series) {
  return series.offset +
         static_cast<std::uint32_t>(series.bounds->bucket_count() + 1);
}
std::uint32_t native_cells_of(const Series& series) {
  return static_cast<std::uint32_t>(native_word_count(series.native_buckets));
}

}  // namespace

Merge::Op Merge::op_of(const Family& family) {
  if (family.kind == MetricKind::kCounter) {
    return family.number == CounterNumber::kInteger ? Op::kAddIntegers
                                                    : Op::kAddReal;
  }
  switch (family.mode) {
    case GaugeMode::kSum:
    case GaugeMode::kLiveSum:
      return Op::kSum;
    case GaugeMode::kMax:
      return Op::kMax;
    case GaugeMode::kMin:
      return Op::kMin;
    case GaugeMode::kMostRecent:
    case GaugeMode::kAll:
    case GaugeMode::kLiveAll:
      break;
  }
  return Op::kNewest;
}

void Merge::run(std::span<const Source> sources) {
  const bool is_same = std::ranges::equal(
      sources, kinds_, [](const Source& source, const Kind& kind) {
        return source.schema == kind.schema && source.pid == kind.pid &&
               source.standing == kind.standing;
      });
  if (!is_same || schema_ == nullptr) plan(sources);
  std::ranges::fill(cells_, 0);
  std::ranges::fill(lows_, 0.0);
  for (std::size_t i = 0; i < sources.size(); ++i) add(sources[i], steps_[i]);
  const bool same_gauges = std::ranges::equal(
      gauges_, was_set_, [this](std::uint32_t gauge, char was_set) {
        return (cells_[gauge + 1] != 0) == (was_set != 0);
      });
  if (schema_ == nullptr || !same_gauges) make_schema();
}

void Merge::plan(std::span<const Source> sources) {
  kinds_.clear();
  steps_.assign(sources.size(), {});
  families_.clear();
  is_past_.clear();
  family_places_.clear();
  targets_.clear();
  misfits_ = 0;
  schema_ = nullptr;
  for (const Source& source : sources) {
    for (const auto& family : source.schema->families)
      place(source, family, /*is_past=*/false);
    for (const auto& family : source.schema->past)
      place(source, family, /*is_past=*/true);
  }
  give_offsets();
  for (std::size_t i = 0; i < sources.size(); ++i) {
    for (const auto& family : sources[i].schema->families)
      make_steps(sources[i], family, steps_[i]);
    for (const auto& family : sources[i].schema->past)
      make_steps(sources[i], family, steps_[i]);
  }
  for (const Source& source : sources)
    kinds_.push_back({source.schema, source.standing, source.pid});
}

void Merge::place(const Source& source, const SchemaFamily& added,
                  bool is_past) {
  if (!counts(source, added.family)) return;
  const auto [into, is_new] =
      family_places_.try_emplace(added.family.name, families_.size());
  if (is_new) {
    families_.push_back({added.family, {}});
    is_past_.emplace_back();
  }
  if (!fit_together(families_[into->second].family, added.family)) {
    misfits_ += added.series.size();
    return;
  }
  for (const Series& series : added.series)
    place_series(source, added.family, into->second, series, is_past);
}

void Merge::place_series(const Source& source, const Family& family,
                         std::size_t into, const Series& series, bool is_past) {
  LabelSet labels = labels_in(source, family, series.labels);
  auto& all = families_[into].series;
  const auto [target, is_new] = targets_.try_emplace(
      key_of(family.name, labels), Target{into, all.size()});
  if (is_new) {
    all.push_back({.labels = std::move(labels),
                   .bounds = series.bounds,
                   .native_buckets = series.native_buckets,
                   .exemplars = series.exemplars});
    is_past_[into].push_back(is_past ? 1 : 0);
    return;
  }
  if (!is_past) is_past_[into][target->second.series] = 0;
  if (series.bounds == nullptr) return;
  // Native buckets of a part of the observations would say nothing.
  if (series.native_buckets == 0) all[target->second.series].native_buckets = 0;
  // Of a part of the processes they are as good.
  if (series.exemplars != 0)
    all[target->second.series].exemplars = series.exemplars;
  auto& bounds = all[target->second.series].bounds;
  if (auto both = common(bounds, series.bounds); both != nullptr) {
    bounds = std::move(both);
  } else {
    ++misfits_;
  }
}

void Merge::give_offsets() {
  gauges_.clear();
  std::uint32_t next = 0;
  for (SchemaFamily& family : families_) {
    const bool is_gauge = family.family.kind == MetricKind::kGauge;
    for (Series& series : family.series) {
      series.offset = next;
      if (series.exemplars != 0)
        series.exemplars =
            static_cast<std::uint32_t>(series.bounds->bucket_count());
      if (is_gauge) gauges_.push_back(next);
      next += static_cast<std::uint32_t>(
          is_gauge ? 2
                   : word_count(family.family.kind, series.bounds.get(),
                                series.native_buckets, series.exemplars));
    }
  }
  cells_.assign(next, 0);
  lows_.assign(next, 0.0);
}

const Series* Merge::target_of(const std::string& family,
                               const LabelSet& labels) const {
  const auto found = targets_.find(key_of(family, labels));
  if (found == targets_.end()) return nullptr;
  const Target& target = found->second;
  return &families_[target.family].series[target.series];
}

void Merge::make_steps(const Source& source, const SchemaFamily& from,
                       std::vector<Step>& out) {
  const Family& family = from.family;
  const auto into = family_places_.find(family.name);
  if (!counts(source, family) || into == family_places_.end() ||
      !fit_together(families_[into->second].family, family))
    return;
  for (const Series& series : from.series) {
    const Series* const target =
        target_of(family.name, labels_in(source, family, series.labels));
    if (family.kind == MetricKind::kHistogram) {
      add_histogram(series, *target, out);
    } else {
      out.push_back({op_of(family), series.offset, target->offset, 1});
    }
  }
}

// A bucket goes into the one that holds it.
void Merge::add_histogram(const Series& from, const Series& to,
                          std::vector<Step>& out) {
  const auto of = from.bounds->values();
  if (common(from.bounds, to.bounds) == nullptr) return;
  const auto add_bucket = [&](std::size_t bucket, std::size_t into) {
    const Step step{Op::kAddIntegers,
                    from.offset + static_cast<std::uint32_t>(bucket),
                    to.offset + static_cast<std::uint32_t>(into), 1};
    if (bucket != 0 && out.back().to + out.back().count == step.to &&
        out.back().from + out.back().count == step.from) {
      ++out.back().count;
    } else {
      out.push_back(step);
    }
  };
  for (std::size_t i = 0; i < of.size(); ++i)
    add_bucket(i, to.bounds->bucket_of(of[i]));
  add_bucket(of.size(), to.bounds->size());
  out.push_back(
      {Op::kAddReal, from.offset + static_cast<std::uint32_t>(of.size() + 1),
       to.offset + static_cast<std::uint32_t>(to.bounds->bucket_count()), 1});
  if (to.native_buckets != 0) {
    out.push_back({Op::kAddNative, native_cell_of(from), native_cell_of(to),
                   native_cells_of(from), native_cells_of(to)});
  }
  if (from.exemplars != 0) add_exemplars(from, to, out);
}

// As the buckets; one that becomes several's keeps the newest of them.
void Merge::add_exemplars(const Series& from, const Series& to,
                          std::vector<Step>& out) {
  const auto cell_of = [](const Series& series, std::size_t bucket) {
    return native_cell_of(series) + native_cells_of(series) +
           static_cast<std::uint32_t>(bucket * kExemplarWords);
  };
  const auto of = from.bounds->values();
  for (std::size_t i = 0; i <= of.size(); ++i) {
    const std::size_t into =
        i < of.size() ? to.bounds->bucket_of(of[i]) : to.bounds->size();
    out.push_back(
        {Op::kNewestExemplar, cell_of(from, i), cell_of(to, into), 1});
  }
}

void Merge::keep_newer(const std::uint64_t* from, std::uint64_t* to) {
  const auto at = [](const std::uint64_t* words) {
    return exemplar_of(
        std::span<const std::uint64_t, kExemplarWords>(words, kExemplarWords));
  };
  const Exemplar one = at(from);
  const Exemplar kept = at(to);
  if (one.valid() && (!kept.valid() || one.timestamp > kept.timestamp))
    std::copy_n(from, kExemplarWords, to);
}

void Merge::add_native(std::span<const std::uint64_t> from,
                       std::span<std::uint64_t> to) {
  const NativeView view = native_view(from);
  const auto is_zero = [](std::uint64_t n) { return n == 0; };
  if (view.zero_count == 0 && std::ranges::all_of(view.counts, is_zero)) return;
  if (std::ranges::all_of(to, is_zero)) {
    // The first of them: its resolution, not that of an empty histogram.
    const auto buckets =
        static_cast<std::uint32_t>(to.size() - kNativeHeaderWords);
    NativeWords<std::uint64_t>(to.data(), buckets)
        .reset({.schema = view.schema,
                .max_buckets = buckets,
                .zero_threshold = view.zero_threshold});
  }
  merge_native(to, view);
}

void Merge::add(const Source& source, std::span<const Step> steps) {
  const auto low_of = [&source](std::uint32_t from) {
    return source.lows.empty() ? 0.0 : source.lows[from];
  };
  for (const Step& step : steps) {
    const std::uint64_t* const from = source.cells.data() + step.from;
    std::uint64_t* const to = cells_.data() + step.to;
    if (step.op == Op::kAddIntegers) {
      for (std::uint32_t i = 0; i < step.count; ++i) to[i] += from[i];
      continue;
    }
    if (step.op == Op::kAddNative) {
      add_native({from, step.count}, {to, step.room});
      continue;
    }
    if (step.op == Op::kNewestExemplar) {
      keep_newer(from, to);
      continue;
    }
    if (step.op == Op::kAddReal) {
      add_exactly(*to, lows_[step.to], real(*from), low_of(step.from));
      continue;
    }
    const double time = real(from[1]);
    if (!(time > 0.0)) continue;  // never set
    const double value = real(from[0]);
    const bool is_first = to[1] == 0;
    const bool is_newer = is_first || time > real(to[1]);
    if (step.op == Op::kSum) {
      add_exactly(to[0], lows_[step.to], value, low_of(step.from));
    } else if (is_first || (step.op == Op::kNewest && is_newer) ||
               (step.op == Op::kMax && value > real(to[0])) ||
               (step.op == Op::kMin && value < real(to[0]))) {
      to[0] = from[0];
    }
    if (is_newer) to[1] = from[1];
  }
}

void Merge::make_schema() {
  was_set_.clear();
  for (const std::uint32_t gauge : gauges_)
    was_set_.push_back(cells_[gauge + 1] != 0 ? 1 : 0);
  auto made = std::make_shared<Schema>();
  made->families = series_that([this](std::size_t family, std::size_t series) {
    return is_past_[family][series] == 0;
  });
  made->word_count = cells_.size();
  schema_ = std::move(made);
}

std::vector<SchemaFamily> Merge::past() const {
  return series_that([this](std::size_t family, std::size_t series) {
    return is_past_[family][series] != 0;
  });
}

// All that are set and wanted.
template <class IsWanted>
std::vector<SchemaFamily> Merge::series_that(IsWanted is_wanted) const {
  std::vector<SchemaFamily> found;
  for (std::size_t i = 0; i < families_.size(); ++i) {
    const SchemaFamily& family = families_[i];
    const bool is_gauge = family.family.kind == MetricKind::kGauge;
    SchemaFamily wanted{family.family, {}};
    for (std::size_t j = 0; j < family.series.size(); ++j) {
      const Series& series = family.series[j];
      const bool is_set = !is_gauge || cells_[series.offset + 1] != 0;
      if (is_set && is_wanted(i, j)) wanted.series.push_back(series);
    }
    if (!wanted.series.empty()) found.push_back(std::move(wanted));
  }
  return found;
}

}  // namespace vllm_metrics::inline v0::shm
