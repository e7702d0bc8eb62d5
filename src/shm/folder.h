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
// A fresh one goes with the last process in it: each holds a shared lock of a
// file there, forked children that of their parent, and who can have it alone
// removes the folder. Who only looks holds it too, and leaves it to others.
//
// Thread-safety: none, but for what is const.
class Folder {
 public:
  // Opens it; makes it if its parent is there and not `read_only`. Errors: not
  // a folder of this machine, not writable (unless `read_only`), a fresh one
  // that is being removed.
  static absl::StatusOr<Folder> open(std::string path, bool read_only);

  // Makes and opens a fresh one where processes of this machine keep what is
  // theirs while they run. Removes those there whose last process was killed.
  static absl::StatusOr<Folder> make_fresh();

  Folder(Folder&&) noexcept = default;
  Folder& operator=(Folder&&) = delete;
  ~Folder();

  const std::string& path() const { return path_; }
  int fd() const { return fd_.value(); }

  // The names in it that are segments, or would have been, sorted.
  void list(std::vector<std::string>& segments,
            std::vector<std::string>& unfinished) const;

  void remove(const std::string& name) const;

  // A new file instead of what has that name, to be written; -1 and errno.
  UniqueFd make(const std::string& name) const;

 private:
  Folder(std::string path, UniqueFd fd, bool read_only)
      : path_(std::move(path)), fd_(std::move(fd)), read_only_(read_only) {}
  absl::Status hold(int flags);
  static void remove_if_left(const std::string& path);
  static void remove_left_in(const std::string& place);

  std::string path_;
  UniqueFd fd_;
  bool read_only_;
  UniqueFd hold_;  // -1: the folder stays
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
