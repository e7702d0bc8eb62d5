#include "src/exposition/page_builder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "src/exposition/page_histogram.h"

namespace vllm_metrics::inline v0 {
namespace {

// What a sample's name may have behind its family's.
constexpr std::array<std::string_view, 8> kSuffixes = {
    "_bucket", "_count",  "_sum",  "_total",
    "_info",   "_gcount", "_gsum", "_created"};

constexpr std::uint8_t bit(auto part) {
  return static_cast<std::uint8_t>(1U << static_cast<unsigned>(part));
}

struct TypeName {
  std::string_view name;
  PageKind kind;
  bool open_metrics_only;
};
constexpr std::array<TypeName, 9> kTypeNames = {{
    {"counter", PageKind::kCounter, false},
    {"gauge", PageKind::kGauge, false},
    {"histogram", PageKind::kHistogram, false},
    {"summary", PageKind::kSummary, false},
    {"untyped", PageKind::kUntyped, false},
    {"unknown", PageKind::kUntyped, true},
    {"info", PageKind::kInfo, true},
    {"stateset", PageKind::kStateSet, true},
    {"gaugehistogram", PageKind::kGaugeHistogram, true},
}};

bool is_histogram(PageKind kind) {
  return kind == PageKind::kHistogram || kind == PageKind::kGaugeHistogram;
}

// Labels of neighbouring lines are often the same bytes.
bool is_same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && (a.data() == b.data() || a == b);
}
bool are_same(const PageLabel& a, const PageLabel& b) {
  return is_same(a.name, b.name) && is_same(a.value, b.value);
}

// Takes the label `name` out of `labels`.
std::optional<std::string_view> take(std::vector<PageLabel>& labels,
                                     std::string_view name) {
  const auto found = std::ranges::find(labels, name, &PageLabel::name);
  if (found == labels.end()) return std::nullopt;
  const std::string_view value = found->value;
  labels.erase(found);
  return value;
}

}  // namespace

PageBuilder::PageBuilder(Page& page, PageFaults& faults)
    : page_(page),
      faults_(faults),
      open_metrics_(page.format == PageFormat::kOpenMetrics),
      by_name_(&scratch_),
      by_labels_(&scratch_) {}

void PageBuilder::note(std::size_t line, std::string text) {
  faults_.note(line, 1, std::move(text));
}

PageBuilder::Part PageBuilder::part_of(PageKind kind,
                                       std::string_view suffix) const {
  if (open_metrics_ && suffix == "_created") {
    const bool has = kind == PageKind::kCounter || is_histogram(kind) ||
                     kind == PageKind::kSummary;
    return has ? Part::kCreated : Part::kNone;
  }
  switch (kind) {
    case PageKind::kUntyped:
    case PageKind::kGauge:
    case PageKind::kStateSet:
      return suffix.empty() ? Part::kValue : Part::kNone;
    case PageKind::kCounter:
      return suffix.empty() || suffix == "_total" ? Part::kValue : Part::kNone;
    case PageKind::kInfo:
      return suffix == "_info" ? Part::kValue : Part::kNone;
    case PageKind::kSummary:
      if (suffix.empty()) return Part::kQuantile;
      break;
    case PageKind::kHistogram:
      if (suffix == "_bucket") return Part::kBucket;
      break;
    case PageKind::kGaugeHistogram:
      if (suffix == "_bucket") return Part::kBucket;
      if (suffix == "_gcount") return Part::kCount;
      if (suffix == "_gsum") return Part::kSum;
      return Part::kNone;
  }
  if (suffix == "_count") return Part::kCount;
  if (suffix == "_sum") return Part::kSum;
  return Part::kNone;
}

// A name is the family's whose sample it can be: first of the family that is
// being read, then of one of this name, then of one with a suffix.
PageBuilder::Place PageBuilder::place_of(std::string_view name) {
  const auto place_in = [&](std::size_t family) -> Place {
    const PageFamily& in = page_.families[family];
    if (!name.starts_with(in.name)) return {family, Part::kNone};
    return {family, part_of(in.kind, name.substr(in.name.size()))};
  };
  if (current_ != kNowhere) {
    if (const Place place = place_in(current_); place.part != Part::kNone)
      return place;
  }
  if (const auto found = by_name_.find(name); found != by_name_.end())
    return place_in(found->second);
  for (const std::string_view suffix : kSuffixes) {
    if (!name.ends_with(suffix)) continue;
    const auto found =
        by_name_.find(name.substr(0, name.size() - suffix.size()));
    if (found == by_name_.end()) continue;
    const Place place = place_in(found->second);
    if (place.part != Part::kNone) return place;
  }
  return {family_of(name), Part::kValue};
}

std::size_t PageBuilder::family_of(std::string_view name) {
  const auto [found, is_new] =
      by_name_.try_emplace(name, page_.families.size());
  if (is_new) {
    page_.families.push_back({.name = name});
    states_.emplace_back();
  }
  return found->second;
}

void PageBuilder::add(const CommentLine& comment) {
  if (comment.name.empty()) return;
  place_.reset();
  bucket_series_ = kNowhere;
  const std::size_t at = family_of(comment.name);
  PageFamily& family = page_.families[at];
  State& state = states_[at];
  const auto once = [&](bool& has, std::string_view keyword) {
    if (std::exchange(has, true)) {
      note(comment.line, message("a second ", keyword, " of ", comment.name,
                                 "; allowed: one"));
      return false;
    }
    if (open_metrics_ && !family.series.empty()) {
      note(comment.line,
           message(keyword, " of ", comment.name, " stands below its samples"));
    }
    return true;
  };
  switch (comment.kind) {
    case CommentLine::Kind::kHelp:
      if (once(state.has_help, "HELP")) family.help = comment.text;
      break;
    case CommentLine::Kind::kUnit:
      if (once(state.has_unit, "UNIT")) set_unit(family, comment);
      break;
    case CommentLine::Kind::kType:
      if (std::exchange(state.has_type, true)) {
        note(comment.line,
             message("a second TYPE of ", comment.name, "; allowed: one"));
      } else {
        set_type(at, comment);
      }
      break;
    case CommentLine::Kind::kOther:
    case CommentLine::Kind::kEnd:
      break;
  }
}

void PageBuilder::set_unit(PageFamily& family, const CommentLine& comment) {
  family.unit = comment.text;
  std::string_view name = family.name;
  if (!name.ends_with(comment.text)) {
    name = {};
  } else {
    name.remove_suffix(comment.text.size());
  }
  if (!comment.text.empty() && !name.ends_with('_')) {
    note(comment.line,
         message("the unit of ", comment.name, " is ", excerpt(comment.text),
                 "; allowed: what the name ends in, behind _"));
  }
}

void PageBuilder::set_type(std::size_t family, const CommentLine& comment) {
  const auto known = std::ranges::find_if(kTypeNames, [&](const TypeName& t) {
    return t.name == comment.text && (open_metrics_ || !t.open_metrics_only);
  });
  if (known == kTypeNames.end() ||
      (open_metrics_ && comment.text == "untyped")) {
    note(comment.line,
         message("the type of ", comment.name, " is ", excerpt(comment.text),
                 "; allowed: counter, gauge, histogram, summary, ",
                 open_metrics_ ? "info, stateset, gaugehistogram and unknown"
                               : "and untyped"));
  }
  if (known != kTypeNames.end()) page_.families[family].kind = known->kind;
  adopt(family, comment.line);
}

// Samples above their TYPE were read as untyped families, of the names they
// have. Now it is known whose they are.
void PageBuilder::adopt(std::size_t family, std::size_t line) {
  const std::string_view name = page_.families[family].name;
  const PageKind kind = page_.families[family].kind;
  if (kind == PageKind::kUntyped && page_.families[family].series.empty())
    return;
  bool is_late = false;
  std::string with_suffix;
  const auto read_again = [&](std::size_t from) {
    const std::vector<PageSeries> taken =
        std::exchange(page_.families[from].series, {});
    const std::string_view old_name = page_.families[from].name;
    const Part part = part_of(kind, old_name.substr(name.size()));
    states_[from].parts.clear();
    for (const PageSeries& series : taken) {
      SampleLine sample{.line = series.line, .name = old_name};
      sample.labels.assign(series.labels.begin(), series.labels.end());
      sample.value = series.value;
      sample.timestamp = series.timestamp;
      place(sample, {family, part});
    }
    is_late = is_late || !taken.empty();
  };
  read_again(family);
  for (const std::string_view suffix : kSuffixes) {
    const bool is_text_counter =
        kind == PageKind::kCounter && !open_metrics_;  // named as its sample
    if (is_text_counter || part_of(kind, suffix) == Part::kNone) continue;
    const auto found = by_name_.find(with_suffix.assign(name).append(suffix));
    if (found == by_name_.end() || states_[found->second].has_type) continue;
    if (page_.families[found->second].series.empty()) continue;
    read_again(found->second);
    states_[found->second].moved = !states_[found->second].has_help;
    if (states_[found->second].moved) by_name_.erase(found);
  }
  current_ = bucket_series_ = kNowhere;
  if (is_late) {
    note(line, message("TYPE of ", name,
                       " stands below its samples; allowed: above them"));
  }
}

// The lines of a family are one group.
void PageBuilder::enter(std::size_t family, std::size_t line) {
  if (family == current_) return;
  if (current_ != kNowhere && !page_.families[current_].series.empty())
    states_[current_].left = true;
  current_ = family;
  if (states_[family].left) {
    note(line, message("more of family ", page_.families[family].name,
                       " after other families; allowed: all its lines in one "
                       "group"));
  }
}

void PageBuilder::add(SampleLine& sample) {
  bucket_series_ = kNowhere;
  if (!sample.repeats_name || !place_) {
    place_ = place_of(sample.name);
    enter(place_->family, sample.line);
  }
  place(sample, *place_);
}

void PageBuilder::place(SampleLine& sample, Place at) {
  const PageFamily& family = page_.families[at.family];
  switch (at.part) {
    case Part::kNone:
      note(sample.line,
           message("sample ", sample.name, " is none that a ",
                   name_of(family.kind), " called ", family.name, " has"));
      return;
    case Part::kBucket:
      return add_bucket(sample, at.family);
    case Part::kQuantile:
      return add_quantile(sample, at.family);
    case Part::kValue:
    case Part::kCount:
    case Part::kSum:
    case Part::kCreated:
      break;
  }
  const std::size_t index = series_of(at.family, sample.labels, sample.line);
  if (!claim(at.family, index, at.part, sample)) return;
  PageSeries& series = page_.families[at.family].series[index];
  if (sample.timestamp) series.timestamp = sample.timestamp;
  if (at.part == Part::kValue) {
    series.value = sample.value;
    if (sample.has_exemplar) series.exemplar = exemplar_of(sample);
    const bool has_total = sample.name.size() != family.name.size();
    if (family.kind == PageKind::kCounter && has_total != open_metrics_) {
      note(sample.line,
           message("counter ", family.name, " has a sample ", sample.name,
                   "; allowed: ", family.name, open_metrics_ ? "_total" : ""));
    }
  } else if (at.part == Part::kCount) {
    series.count = sample.value;
  } else {
    (at.part == Part::kSum ? series.sum : series.created) = sample.value;
  }
  const bool may_have_exemplar =
      at.part == Part::kValue && family.kind == PageKind::kCounter;
  if (sample.has_exemplar && !may_have_exemplar) {
    note(sample.line,
         message("sample ", sample.name,
                 " has an exemplar; allowed: counters and buckets"));
  }
}

bool PageBuilder::claim(std::size_t family, std::size_t series, Part part,
                        const SampleLine& sample) {
  std::uint8_t& parts = states_[family].parts[series];
  if ((parts & bit(part)) == 0) {
    parts |= bit(part);
    return true;
  }
  note(sample.line, message("a second sample ", sample.name,
                            " of the same labels; allowed: one"));
  return false;
}

std::size_t PageBuilder::series_of(std::size_t family,
                                   std::span<const PageLabel> labels,
                                   std::size_t line) {
  std::vector<PageSeries>& all = page_.families[family].series;
  const auto has_labels = [&](const PageSeries& series) {
    return std::ranges::equal(series.labels, labels, are_same);
  };
  if (!all.empty() && has_labels(all.back())) return all.size() - 1;

  std::size_t hash = family;
  for (const PageLabel& label : labels) {
    hash =
        hash * 0x9E3779B97F4A7C15U ^ std::hash<std::string_view>()(label.value);
  }
  const auto [begin, end] = by_labels_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    const auto& [of, index] = it->second;
    // Where a late TYPE took series away, places lead to others or to none.
    if (of == family && index < all.size() && has_labels(all[index]))
      return index;
  }
  by_labels_.emplace(hash, SeriesPlace{family, all.size()});
  auto* const copy = static_cast<PageLabel*>(
      page_.storage->allocate(labels.size_bytes(), alignof(PageLabel)));
  std::ranges::copy(labels, copy);
  all.push_back({.labels = {copy, labels.size()}, .line = line});
  states_[family].parts.push_back(0);
  return all.size() - 1;
}

bool PageBuilder::read_bound(std::string_view text, std::size_t index,
                             double& out) {
  if (index < known_bounds_.size() && known_bounds_[index].text == text) {
    out = known_bounds_[index].bound;
    return true;
  }
  if (!parse_number(text, out) || std::isnan(out)) return false;
  known_bounds_.resize(std::max(known_bounds_.size(), index + 1));
  known_bounds_[index] = {text, out};
  return true;
}

void PageBuilder::add_bucket(SampleLine& sample, std::size_t family) {
  const auto text = take(sample.labels, "le");
  std::vector<PageSeries>& all = page_.families[family].series;
  // Of the series before, if this one is new: no place is wrong, only slower.
  const std::size_t index = all.empty() ? 0 : all.back().buckets.size();
  PageBucket bucket{.count = sample.value};
  if (!text || !read_bound(*text, index, bucket.bound)) {
    note(sample.line,
         message("bucket ", sample.name, " has ",
                 text ? "le=" + excerpt(*text) : std::string("no label le"),
                 "; allowed: le=\"NUMBER\" and le=\"+Inf\""));
    return;
  }
  const std::size_t at = series_of(family, sample.labels, sample.line);
  PageSeries& series = all[at];
  if (series.buckets.empty()) {
    states_[family].parts[at] |= bit(Part::kBucket);
    series.buckets.reserve(all.front().buckets.size());
  }
  if (sample.has_exemplar) bucket.exemplar = exemplar_of(sample);
  if (sample.timestamp) series.timestamp = sample.timestamp;
  series.buckets.push_back(bucket);
  bucket_series_ = at;
}

bool PageBuilder::add(const NextBucket& next) {
  std::vector<PageBucket>& buckets =
      page_.families[place_->family].series[bucket_series_].buckets;
  double bound = 0.0;
  if (!read_bound(next.le, buckets.size(), bound)) return false;
  buckets.push_back({.bound = bound, .count = next.value});
  return true;
}

void PageBuilder::add_quantile(SampleLine& sample, std::size_t family) {
  const auto text = take(sample.labels, "quantile");
  PageQuantile quantile{.value = sample.value};
  if (!text || !parse_number(*text, quantile.quantile) ||
      !(quantile.quantile >= 0.0 && quantile.quantile <= 1.0)) {
    note(sample.line, message("summary ", sample.name, " has ",
                              text ? "quantile=" + excerpt(*text)
                                   : std::string("no label quantile"),
                              "; allowed: 0 to 1"));
    return;
  }
  const std::size_t index = series_of(family, sample.labels, sample.line);
  PageSeries& series = page_.families[family].series[index];
  if (std::ranges::find(series.quantiles, quantile.quantile,
                        &PageQuantile::quantile) != series.quantiles.end()) {
    note(sample.line, message("a second quantile ", excerpt(*text), " of ",
                              sample.name, "; allowed: one"));
    return;
  }
  if (sample.timestamp) series.timestamp = sample.timestamp;
  series.quantiles.push_back(quantile);
}

const PageExemplar* PageBuilder::exemplar_of(const SampleLine& sample) {
  std::pmr::polymorphic_allocator<> storage(page_.storage.get());
  const auto& labels = sample.exemplar.labels;
  auto* const copy = storage.allocate_object<PageLabel>(labels.size());
  std::ranges::copy(labels, copy);
  return storage.new_object<PageExemplar>(
      PageExemplar{.labels = {copy, labels.size()},
                   .value = sample.exemplar.value,
                   .timestamp = sample.exemplar.timestamp});
}

void PageBuilder::finish() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < page_.families.size(); ++i) {
    PageFamily& family = page_.families[i];
    for (std::size_t s = 0; s < family.series.size(); ++s)
      finish_series(family, family.series[s], states_[i].parts[s]);
    if (states_[i].moved) continue;
    if (kept != i) page_.families[kept] = std::move(family);
    ++kept;
  }
  page_.families.resize(kept);
}

void PageBuilder::finish_series(const PageFamily& family, PageSeries& series,
                                std::uint8_t parts) {
  if (is_histogram(family.kind)) {
    const bool has_count = (parts & bit(Part::kCount)) != 0;
    return finish_histogram(page_.format, family, has_count, series, faults_);
  }
  if (!open_metrics_ || family.kind != PageKind::kCounter) return;
  if ((parts & bit(Part::kValue)) == 0) {
    note(series.line, message("counter ", family.name, " has no sample ",
                              family.name, "_total of these labels"));
  } else if (!(series.value >= 0.0)) {
    note(series.line, message("counter ", family.name,
                              " is negative or NaN; allowed: from 0 on"));
  }
}

}  // namespace vllm_metrics::inline v0
