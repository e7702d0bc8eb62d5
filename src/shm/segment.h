#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/registry/mutex.h"
#include "src/shm/fork_aware.h"
#include "src/shm/process_identity.h"
#include "vllm_metrics/registry/series_store.h"
#include "vllm_metrics/shm/segment_format.h"

namespace vllm_metrics::inline v0::shm {

inline constexpr std::string_view kFilePrefix = "vllm_metrics-";
inline constexpr std::string_view kSegmentSuffix = ".segment";
inline constexpr std::string_view kUnfinishedSuffix = ".tmp";
inline constexpr std::size_t kMostSegmentBytes = std::size_t{1} << 31;

// An error with the path and the system's text for `error`, an errno value.
absl::Status system_error(std::string_view what, std::string_view path,
                          int error);

// This process's own file of a folder, mapped: where its series lie.
//
// After fork() the child's memory holds a segment of the child's own at the
// same address, with the same blocks, all cells zero; the parent's goes on. No
// pointer changes, so nobody has to look whether it is in a child.
//
// Thread-safety: claim() from any thread.
class Segment final : public ForkAware {
 public:
  static absl::StatusOr<std::shared_ptr<Segment>> create(std::string folder,
                                                         std::size_t bytes);
  ~Segment() override;
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  // Memory for series; it is theirs until `Place::memory` is let go. Series
  // like ones that have been let go continue where those ended.
  static absl::StatusOr<SeriesStore::Place> claim(
      const std::shared_ptr<Segment>& segment,
      const SeriesStore::Request& request);

  // The name of the file in its folder.
  std::string name() const { return name_; }

 private:
  Segment(std::string folder, std::size_t bytes);
  int make_file(const ProcessIdentity& owner, void*& memory) noexcept;
  int show_file() noexcept;
  void before_fork() noexcept override ABSL_NO_THREAD_SAFETY_ANALYSIS {
    mutex_.lock();
  }
  void after_fork(bool in_child) noexcept override
      ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (in_child) begin_child();
    mutex_.unlock();
  }
  void say_it_is_alone(int error) const noexcept;
  void begin_child() noexcept ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  BlockHeader* reopen(std::string_view schema,
                      const SeriesStore::Request& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  BlockHeader* append(std::string_view schema,
                      const SeriesStore::Request& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void close(BlockHeader* block) noexcept;
  void note_change() noexcept;

  const std::string folder_;
  const std::size_t bytes_;
  std::string name_;  // with room for any other: a child allocates nothing
  std::string path_;
  std::string unfinished_;
  SegmentHeader* header_ = nullptr;
  Mutex mutex_;
  struct Block {
    BlockHeader* header;
    // Bytes from it to the words of its native histograms, whose first three
    // are no counts: a child begins with them.
    std::vector<std::size_t> native_at;
  };
  std::vector<Block> blocks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace vllm_metrics::inline v0::shm
