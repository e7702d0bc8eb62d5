#include "src/registry/page_index.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace vllm_metrics::inline v0 {
namespace {

std::string text(const Labels& labels) {
  const auto one = [](std::string* out, const Label& label) {
    absl::StrAppend(out, label.name, "=\"", label.value, "\"");
  };
  return absl::StrCat("{", absl::StrJoin(labels, ",", one), "}");
}

// The names that a family's samples may take in one of the expositions; no
// other family may have them.
std::vector<std::string> sample_names(const Family& family) {
  const auto with = [&](std::initializer_list<std::string_view> suffixes) {
    std::vector<std::string> names{family.name};
    for (const auto suffix : suffixes) {
      names.push_back(family.name + std::string(suffix));
    }
    return names;
  };
  switch (family.kind) {
    case MetricKind::kCounter:
      return with({"_total", "_created"});
    case MetricKind::kHistogram:
      return with({"_bucket", "_count", "_sum", "_created"});
    case MetricKind::kGauge:
      return with({});
  }
  return {};
}

bool same_label_names(const Labels& a, const Labels& b) {
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
  return "with another number type or merge mode";
}

}  // namespace

std::string series_key(const Labels& labels) {
  std::string key;
  for (const Label& label : labels) {
    // 0xFF is not a byte of valid UTF-8, so it ends a text for certain.
    absl::StrAppend(&key, label.name, "\xFF", label.value, "\xFF");
  }
  return key;
}

absl::Status PageIndex::add(const std::vector<SchemaFamily>& families) {
  std::vector<std::string> clashing;
  for (auto added = families.begin(); added != families.end(); ++added) {
    if (auto status = check(*added); !status.ok()) {
      remove({families.begin(), added});
      return status;
    }
    const std::string& name = added->family.name;
    if (!insert(*added) && std::ranges::find(clashing, name) == clashing.end())
      clashing.push_back(name);
  }
  if (clashing.empty()) return absl::OkStatus();
  remove(families);
  return absl::AlreadyExistsError(absl::StrCat(
      "the same series (name and labels) are already registered in ",
      clashing.size(), clashing.size() == 1 ? " family: " : " families: ",
      absl::StrJoin(clashing, ", ")));
}

void PageIndex::remove(const std::vector<SchemaFamily>& families) {
  for (const SchemaFamily& added : families) erase(added);
}

absl::Status PageIndex::check(const SchemaFamily& added) const {
  const Family& family = added.family;
  const auto found = entries_.find(family.name);
  const Entry* entry = found != entries_.end() ? &found->second : nullptr;
  if (entry != nullptr && !(entry->family == family)) {
    return absl::InvalidArgumentError(
        absl::StrCat("family ", family.name, " is already registered ",
                     difference(entry->family, family)));
  }
  const Labels* form =
      entry != nullptr && !entry->series.empty() ? &entry->form : nullptr;
  for (const Series& series : added.series) {
    if (form == nullptr) form = &series.labels;
    if (!family.info && !same_label_names(series.labels, *form)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "family ", family.name, ": the labels of ", text(series.labels),
          " differ in name from those of ", text(*form)));
    }
  }
  if (entry != nullptr) return absl::OkStatus();
  for (const std::string& name : sample_names(family)) {
    const auto owner = owners_.find(name);
    if (owner == owners_.end()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("family ", family.name, ": the name ", name,
                     " belongs to family ", owner->second));
  }
  return absl::OkStatus();
}

// False when one of its series was there before; it is counted all the same.
bool PageIndex::insert(const SchemaFamily& added) {
  const Family& family = added.family;
  Entry& entry = entries_[family.name];
  if (entry.references++ == 0) {
    entry.family = family;
    for (std::string& name : sample_names(family)) {
      owners_.emplace(std::move(name), family.name);
    }
  }
  bool all_new = true;
  for (const Series& series : added.series) {
    if (entry.series.empty()) entry.form = series.labels;
    const std::size_t times = ++entry.series[series_key(series.labels)];
    all_new = all_new && (times == 1 || family.info);
  }
  return all_new;
}

void PageIndex::erase(const SchemaFamily& added) {
  const auto found = entries_.find(added.family.name);
  Entry& entry = found->second;
  for (const Series& series : added.series) {
    const auto known = entry.series.find(series_key(series.labels));
    if (--known->second == 0) entry.series.erase(known);
  }
  if (--entry.references > 0) return;
  for (const std::string& name : sample_names(entry.family)) {
    owners_.erase(name);
  }
  entries_.erase(found);
}

}  // namespace vllm_metrics::inline v0
