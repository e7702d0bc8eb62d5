#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "src/registry/unique_fd.h"

namespace vllm_metrics::inline v0::shm {

inline constexpr const char* kFoldedName = "vllm_metrics.folded";

// The folder that processes share.
//
// Thread-safety: none, but for what is const.
class Folder {
 public:
  // Opens it; makes it if its parent is there and not `read_only`. Errors: not
  // a folder of this machine, not writable (unless `read_only`).
  static absl::StatusOr<Folder> open(std::string path, bool read_only);

  // Makes and opens a fresh one where processes of this machine keep what is
  // theirs while they run.
  static absl::StatusOr<Folder> make_fresh();

  const std::string& path() const { return path_; }
  int fd() const { return fd_.value(); }

  // The names in it that are segments, or would have been, sorted.
  void list(std::vector<std::string>& segments,
            std::vector<std::string>& unfinished) const;

  void remove(const std::string& name) const;

 private:
  Folder(std::string path, UniqueFd fd)
      : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  UniqueFd fd_;
};

// Held by the one process that changes what others left; the system lets go of
// it when that process dies.
class FolderLock {
 public:
  // Not held if another process has it.
  static FolderLock try_take(const Folder& folder);
  FolderLock(FolderLock&&) noexcept = default;
  FolderLock& operator=(FolderLock&&) = delete;
  ~FolderLock();

  bool is_held() const { return file_.value() >= 0; }

 private:
  explicit FolderLock(UniqueFd file) : file_(std::move(file)) {}
  UniqueFd file_;
};

}  // namespace vllm_metrics::inline v0::shm
