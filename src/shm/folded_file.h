#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "absl/status/status.h"
#include "src/registry/unique_fd.h"
#include "src/shm/folder.h"
#include "src/shm/merge.h"
#include "src/shm/schema_codec.h"
#include "vllm_metrics/shm/segment_format.h"

namespace vllm_metrics::inline v0::shm {

// The sums of processes that have ended, so that a scrape costs what the living
// cost. The file is never changed, only replaced, and says which segments are
// in it: whoever dies between replacing it and removing those counts nothing
// twice.
//
// Thread-safety: none.
class FoldedFile {
 public:
  // Reads the file if it is another one than last time. No file is an empty
  // one. What is wrong with it is told each time; it is empty then too.
  absl::Status refresh(const Folder& folder, SchemaDecoder& schemas);

  // Whether the folder still has the file that refresh() read.
  bool is_current(const Folder& folder) const;

  bool includes(const std::string& segment) const {
    return names_.contains(segment);
  }
  std::size_t torn_banks() const { return torn_banks_; }
  // When the first segment in it was made; 0: unknown. Nothing: it is empty.
  std::optional<double> opened() const;
  void add_to(std::vector<Source>& out) const;

  // Replaces the file: the sums of `merge`, in which are the segments `names`,
  // the first of them made at `opened`.
  static absl::Status write(const Folder& folder, const Merge& merge,
                            std::size_t torn_banks, double opened,
                            std::span<const std::string> names);

 private:
  absl::Status read(std::uint64_t file_bytes, SchemaDecoder& schemas);
  absl::Status parse(const BlockHeader& block, std::string_view bytes,
                     SchemaDecoder& schemas);
  void clear();

  UniqueFd file_;  // open, so that no other file gets its number
  ino_t number_ = 0;
  absl::Status status_ = {};
  std::shared_ptr<const BlockSchema> schema_;
  std::vector<std::uint64_t> cells_;
  std::vector<double> lows_;
  std::size_t torn_banks_ = 0;
  double opened_ = 0.0;
  std::unordered_set<std::string> names_;
};

}  // namespace vllm_metrics::inline v0::shm
