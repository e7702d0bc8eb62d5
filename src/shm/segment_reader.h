#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/registry/unique_fd.h"
#include "src/shm/merge.h"
#include "src/shm/process_identity.h"
#include "src/shm/schema_codec.h"
#include "vllm_metrics/shm/segment_format.h"

namespace vllm_metrics::inline v0::shm {

// Reads all of `bytes` or says why not.
absl::Status read_whole(int file, std::uint64_t at, void* out,
                        std::size_t bytes);

// `header.opened`, or 0 where a damaged file has what is no time.
double opened_of(const SegmentHeader& header);

// Reads a process's segment, without mapping it: whatever happens to the file,
// there is no signal, only a short read.
//
// Thread-safety: none.
class SegmentReader {
 public:
  // `self`: who asks.
  SegmentReader(int folder, const std::string& name,
                const ProcessIdentity& self);

  // Reads all cells anew, each bank between two steps. An error says what is
  // wrong with the file; what was read before stays then. Returns in bounded
  // time: a live owner that is stopped inside a step is shown as it was last.
  absl::Status read(SchemaDecoder& schemas);

  // Whether it was removed before it could be opened.
  bool is_gone() const { return open_error_ == ENOENT; }

  // Whether the owner writes no more, as of the last read().
  bool has_ended() const { return has_ended_; }

  // Whether who is named in the header lives, after a read() that read it.
  bool is_owner_alive() { return owner_ != nullptr && owner_->is_alive(); }

  // When the segment was made, seconds since 1970; 0: unknown.
  double opened() const { return opened_of(header_); }

  // Of the last read(): appends the blocks, pointing into this.
  void add_to(std::vector<Source>& out) const;
  // Banks that their owner left inside a step.
  std::size_t torn_banks() const;

 private:
  struct Block {
    std::uint64_t at = 0;  // in the file
    BlockForm form = BlockForm::kWords;
    bool is_closed = false;
    std::size_t bank_count = 1;
    std::size_t cell_count = 0;
    std::uint64_t cells_at = 0;
    std::shared_ptr<const BlockSchema> schema = {};
    std::vector<std::uint64_t> cells = {};
    std::vector<std::uint64_t> stuck = {};  // sequence words given up on
    std::vector<char> is_torn = {};         // by bank
    // kInfo: as the labels were read; the family is all that the file says.
    std::vector<std::string> texts = {};
    Family family = {};
  };

  absl::Status read_header();
  absl::Status read_blocks(SchemaDecoder& schemas);
  absl::Status read_block(std::uint64_t at, SchemaDecoder& schemas, Block& out);
  absl::Status read_bank(Block& block, std::size_t bank);
  absl::Status read_words(Block& block);
  absl::Status read_histogram(Block& block);
  static void read_labels(Block& block);
  absl::Status read_at(std::uint64_t at, void* out, std::size_t bytes) const;
  absl::StatusOr<bool> try_read(std::uint64_t sequence_at,
                                std::uint64_t cells_at,
                                std::span<std::uint64_t> out) const;
  absl::StatusOr<std::uint64_t> word_at(std::uint64_t at) const;

  UniqueFd file_;
  int open_error_ = 0;
  SegmentHeader header_;
  ProcessIdentity self_;
  std::unique_ptr<ProcessWatch> owner_;
  std::uint64_t changes_ = UINT64_MAX;
  bool is_alive_ = true;
  bool has_ended_ = false;
  std::vector<Block> blocks_;
  std::vector<std::uint64_t> second_look_;
};

}  // namespace vllm_metrics::inline v0::shm
