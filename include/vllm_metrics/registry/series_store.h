#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "vllm_metrics/export.h"
#include "vllm_metrics/registry/schema.h"
#include "vllm_metrics/registry/snapshot.h"

namespace vllm_metrics::inline v0 {

// Where the series of a registry lie when others are to see them too, e.g.
// memory that processes share. What lies there has the same words wherever it
// is, so that what one registry writes any store can read.
//
// Thread-safety: every member from any thread.
class VLLM_METRICS_EXPORT SeriesStore {
 public:
  enum class Form {
    kBanks,      // written in sections (bank.h), a step at once
    kWords,      // each word by itself, by many threads
    kHistogram,  // one, written by many threads (histogram.h)
    kInfo,       // banks, each a series whose labels are in it (info_words.h)
  };
  // What is to be stored. Offsets of `families`, which are as a registry has
  // them, count the cells of all banks one behind the other. A gauge is two
  // cells: its value, and the time of its last write.
  struct Request {
    const std::vector<SchemaFamily>& families;
    Form form = Form::kBanks;
    std::size_t banks = 1;
    std::size_t cell_count = 0;  // of each bank
  };
  // Memory that the series keep as long as `memory` is held. Banks lie in it
  // Banks::stride() apart. If not new, it is as series like these left it.
  struct Place {
    std::shared_ptr<void> memory = {};  // 64-byte aligned
    bool is_new = true;                 // all bytes are zero
  };

  virtual ~SeriesStore();

  // Errors: ResourceExhausted when there is no room, Unimplemented for series
  // that cannot be stored.
  virtual absl::StatusOr<Place> claim(const Request& request) = 0;

  // The series of all who write to the store, merged, into `out`.
  virtual void snapshot(Snapshot& out) const = 0;
};

}  // namespace vllm_metrics::inline v0
