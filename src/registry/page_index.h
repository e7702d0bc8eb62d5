#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "vllm_metrics/registry/schema.h"

namespace vllm_metrics::inline v0 {

// A label set beside others of one family, or of a page.
struct SeriesKey {
  const Family* family;
  LabelSet labels;

  friend bool operator==(const SeriesKey&, const SeriesKey&) = default;
};
struct SeriesKeyHash {
  std::size_t operator()(const SeriesKey& key) const noexcept;
};

// Some series of one family, which the index keeps.
struct IndexedFamily {
  const Family* family;
  std::vector<Series> series = {};
};

// The names and label sets that are on a page, and who may still join them.
//
// A page has three copies of little but this: the index keeps one of each
// family, and label sets share their memory.
//
// Cost: add() and remove() take the time of the series they are given, however
// many there are on the page.
// Thread-safety: none; the registry's lock guards it.
class PageIndex {
 public:
  // Adds all of `families`, each well-formed by itself and normalized, or says
  // what does not fit beside the others and adds nothing. What it returns holds
  // until it is given to remove().
  absl::StatusOr<std::vector<IndexedFamily>> add(
      std::vector<SchemaFamily> families);

  // Takes back what add() added.
  void remove(const std::vector<IndexedFamily>& families);

  std::size_t family_count() const { return entries_.size(); }

 private:
  struct Entry {
    std::unique_ptr<const Family> family;
    LabelSet form = {};            // of its first series: the names of all
    std::size_t references = 0;    // how often add() was given the family
    std::size_t series_count = 0;  // with those that are there twice
  };

  absl::Status check(const SchemaFamily& added) const;
  const Family* owner_of(std::string_view sample_name) const;
  bool insert(SchemaFamily& added, IndexedFamily& indexed);
  void erase(const IndexedFamily& indexed);

  // By family name, which is the family's own.
  std::unordered_map<std::string_view, Entry> entries_;
  // How often each is there.
  std::unordered_map<SeriesKey, std::size_t, SeriesKeyHash> series_;
};

}  // namespace vllm_metrics::inline v0
