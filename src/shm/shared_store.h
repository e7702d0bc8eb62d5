#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/registry/mutex.h"
#include "src/shm/folded_file.h"
#include "src/shm/folder.h"
#include "src/shm/fork_aware.h"
#include "src/shm/merge.h"
#include "src/shm/process_identity.h"
#include "src/shm/schema_codec.h"
#include "src/shm/segment.h"
#include "src/shm/segment_reader.h"
#include "vllm_metrics/registry/series_store.h"
#include "vllm_metrics/shm/shared_registry.h"

namespace vllm_metrics::inline v0::shm {

// What a shared registry keeps its series in: this process's segment, and the
// segments of all for its page.
//
// Thread-safety: every member from any thread; one scrape at a time.
class SharedStore final : public SeriesStore, private ForkAware {
 public:
  SharedStore(Folder folder, std::shared_ptr<Segment> segment,
              const SharedRegistryOptions& options);
  ~SharedStore() override;

  absl::StatusOr<Place> claim(const Request& request) override;
  void snapshot(Snapshot& out) const override;

  const std::string& folder() const { return folder_.path(); }

  // Removes what ended processes left, unless one is alive. Unavailable:
  // another process keeps changing the folder.
  static absl::Status wipe(const Folder& folder);

 private:
  using Readers =
      std::map<std::string, std::unique_ptr<SegmentReader>, std::less<>>;

  void read_all() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void read_once() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void fold() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void remove_unfinished() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void make_schema(double since) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void warn_once(const std::string& name, const absl::Status& why) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  void before_fork() noexcept override ABSL_NO_THREAD_SAFETY_ANALYSIS {
    mutex_.lock();
  }
  void after_fork(bool) noexcept override ABSL_NO_THREAD_SAFETY_ANALYSIS {
    mutex_.unlock();
  }

  const Folder folder_;
  const std::shared_ptr<Segment> segment_;  // null: only looks
  const bool read_only_;
  const bool self_metrics_;
  const std::function<void(std::string_view)> on_warning_;

  mutable Mutex mutex_;
  mutable SchemaDecoder schemas_ ABSL_GUARDED_BY(mutex_);
  mutable FoldedFile folded_ ABSL_GUARDED_BY(mutex_);
  mutable Readers readers_ ABSL_GUARDED_BY(mutex_);  // by file name
  mutable std::vector<std::string> names_ ABSL_GUARDED_BY(mutex_);
  mutable std::vector<std::string> unfinished_ ABSL_GUARDED_BY(mutex_);
  mutable std::vector<Source> sources_ ABSL_GUARDED_BY(mutex_);
  mutable Merge merge_ ABSL_GUARDED_BY(mutex_);
  mutable std::set<std::string> unreadable_ ABSL_GUARDED_BY(mutex_);
  mutable std::set<std::string> warned_ ABSL_GUARDED_BY(mutex_);
  mutable std::shared_ptr<const Schema> merged_ ABSL_GUARDED_BY(mutex_);
  mutable std::shared_ptr<const Schema> schema_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace vllm_metrics::inline v0::shm
