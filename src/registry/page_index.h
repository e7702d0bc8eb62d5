#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "vllm_metrics/registry/schema.h"

namespace vllm_metrics::inline v0 {

// Equal for equal label sets only, which are sorted and valid UTF-8.
std::string series_key(const Labels& labels);

// The names and label sets that are on a page, and who may still join them.
//
// Cost: add() and remove() take the time of the series they are given, however
// many there are on the page.
// Thread-safety: none; the registry's lock guards it.
class PageIndex {
 public:
  // Adds all of `families`, each well-formed by itself and normalized, or says
  // what does not fit beside the others and adds nothing.
  absl::Status add(const std::vector<SchemaFamily>& families);

  // Takes back what add() added.
  void remove(const std::vector<SchemaFamily>& families);

 private:
  struct Entry {
    Family family;
    Labels form;                 // of its first series: the label names of all
    std::size_t references = 0;  // how often add() was given the family
    std::unordered_map<std::string, std::size_t> series;  // by key, how often
  };

  absl::Status check(const SchemaFamily& added) const;
  bool insert(const SchemaFamily& added);
  void erase(const SchemaFamily& added);

  std::unordered_map<std::string, Entry> entries_;       // by family name
  std::unordered_map<std::string, std::string> owners_;  // by sample name
};

}  // namespace vllm_metrics::inline v0
