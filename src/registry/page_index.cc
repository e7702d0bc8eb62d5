#include "src/registry/page_index.h"

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace vllm_metrics::inline v0 {
namespace {

std::string text(const LabelSet& labels) {
  const auto one = [](std::string* out, const Label& label) {
    absl::StrAppend(out, label.name, "=\"", label.value, "\"");
  };
  return absl::StrCat("{", absl::StrJoin(labels, ",", one), "}");
}

// What follows a family's name in those of its samples, in one exposition or
// another; no other family may have these names.
std::span<const std::string_view> sample_suffixes(MetricKind kind) {
  static constexpr std::string_view kCounter[] = {"_total", "_created"};
  static constexpr std::string_view kHistogram[] = {"_bucket", "_count", "_sum",
                                                    "_created"};
  switch (kind) {
    case MetricKind::kCounter:
      return kCounter;
    case MetricKind::kHistogram:
      return kHistogram;
    case MetricKind::kGauge:
      return {};
  }
  return {};
}

bool same_label_names(const LabelSet& a, const LabelSet& b) {
  return std::ranges::equal(a, b, {}, &Label::name, &Label::name);
}

// How `family` is registered already, where that is not how it is added now.
std::string difference(const Family& registered, const Family& added) {
  if (registered.kind != added.kind) {
    return absl::StrCat("as a ", std::string(name_of(registered.kind)));
  }
  if (registered.help != added.help) {
    return absl::StrCat("with the help \"", registered.help, "\"");
  }
  if (registered.info != added.info) {
    return registered.info ? "as an info family" : "not as an info family";
  }
  if (registered.unit != added.unit) {
    return absl::StrCat("with the unit \"", registered.unit, "\"");
  }
  return "with another number type or merge mode";
}

}  // namespace

std::size_t SeriesKeyHash::operator()(const SeriesKey& key) const noexcept {
  std::size_t hash = std::hash<const Family*>()(key.family);
  const auto add = [&hash](std::string_view text) {
    hash = hash * 31 + std::hash<std::string_view>()(text);
  };
  for (const Label& label : key.labels) {
    add(label.name);
    add(label.value);
  }
  return hash;
}

absl::StatusOr<std::vector<IndexedFamily>> PageIndex::add(
    std::vector<SchemaFamily> families) {
  std::vector<IndexedFamily> indexed;
  indexed.reserve(families.size());
  std::vector<std::string> clashing;
  for (SchemaFamily& added : families) {
    if (auto status = check(added); !status.ok()) {
      remove(indexed);
      return status;
    }
    const bool all_new = insert(added, indexed.emplace_back());
    const std::string& name = indexed.back().family->name;
    if (!all_new && std::ranges::find(clashing, name) == clashing.end())
      clashing.push_back(name);
  }
  if (clashing.empty()) return indexed;
  auto status = absl::AlreadyExistsError(absl::StrCat(
      "the same series (name and labels) are already registered in ",
      clashing.size(), clashing.size() == 1 ? " family: " : " families: ",
      absl::StrJoin(clashing, ", ")));
  remove(indexed);
  return status;
}

void PageIndex::remove(const std::vector<IndexedFamily>& families) {
  for (const IndexedFamily& indexed : families) erase(indexed);
}

// The family that is registered with a sample of that name, or null.
const Family* PageIndex::owner_of(std::string_view sample_name) const {
  const auto found = entries_.find(sample_name);
  if (found != entries_.end()) return found->second.family.get();
  for (const MetricKind kind : {MetricKind::kCounter, MetricKind::kHistogram}) {
    for (const std::string_view suffix : sample_suffixes(kind)) {
      if (!sample_name.ends_with(suffix)) continue;
      const auto owner = entries_.find(
          sample_name.substr(0, sample_name.size() - suffix.size()));
      if (owner != entries_.end() && owner->second.family->kind == kind) {
        return owner->second.family.get();
      }
    }
  }
  return nullptr;
}

absl::Status PageIndex::check(const SchemaFamily& added) const {
  const Family& family = added.family;
  const auto found = entries_.find(family.name);
  const Entry* entry = found != entries_.end() ? &found->second : nullptr;
  if (entry != nullptr && !(*entry->family == family)) {
    return absl::InvalidArgumentError(
        absl::StrCat("family ", family.name, " is already registered ",
                     difference(*entry->family, family)));
  }
  const LabelSet* form =
      entry != nullptr && entry->series_count != 0 ? &entry->form : nullptr;
  for (const Series& series : added.series) {
    if (form == nullptr) form = &series.labels;
    if (!family.info && !same_label_names(series.labels, *form)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "family ", family.name, ": the labels of ", text(series.labels),
          " differ in name from those of ", text(*form)));
    }
  }
  if (entry != nullptr) return absl::OkStatus();
  const auto check_name = [&](const std::string& name) {
    const Family* owner = owner_of(name);
    if (owner == nullptr) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("family ", family.name, ": the name ", name,
                     " belongs to family ", owner->name));
  };
  auto status = check_name(family.name);
  for (const std::string_view suffix : sample_suffixes(family.kind)) {
    if (!status.ok()) break;
    status = check_name(absl::StrCat(family.name, std::string(suffix)));
  }
  return status;
}

// False when one of its series was there before; it is counted all the same.
bool PageIndex::insert(SchemaFamily& added, IndexedFamily& indexed) {
  auto found = entries_.find(added.family.name);
  if (found == entries_.end()) {
    auto family = std::make_unique<const Family>(std::move(added.family));
    const std::string_view name = family->name;
    found = entries_.emplace(name, Entry{.family = std::move(family)}).first;
  }
  Entry& entry = found->second;
  ++entry.references;
  indexed = {entry.family.get(), std::move(added.series)};
  indexed.series.shrink_to_fit();
  bool all_new = true;
  for (const Series& series : indexed.series) {
    if (entry.series_count++ == 0) entry.form = series.labels;
    const std::size_t times = ++series_[{indexed.family, series.labels}];
    all_new = all_new && (times == 1 || indexed.family->info);
  }
  return all_new;
}

void PageIndex::erase(const IndexedFamily& indexed) {
  const auto found = entries_.find(indexed.family->name);
  Entry& entry = found->second;
  entry.series_count -= indexed.series.size();
  for (const Series& series : indexed.series) {
    const auto known = series_.find({indexed.family, series.labels});
    if (--known->second == 0) series_.erase(known);
  }
  if (--entry.references > 0) return;
  entries_.erase(found);
}

}  // namespace vllm_metrics::inline v0
