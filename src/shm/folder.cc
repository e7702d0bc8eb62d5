#include "src/shm/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "src/shm/segment.h"

namespace vllm_metrics::inline v0::shm {
namespace {

constexpr const char* kLockName = "vllm_metrics.lock";
constexpr const char* kHoldName = "vllm_metrics.hold";
constexpr std::string_view kFreshName = "vllm_metrics-XXXXXX";  // mkdtemp()

// File systems whose files other machines change: what is mapped here is then
// not what is read there.
std::string_view network_name(int folder) {
  struct statfs of {};
  if (::fstatfs(folder, &of) != 0) return {};
  switch (static_cast<unsigned long>(of.f_type) & 0xFFFFFFFF) {
    case 0x6969:
      return "nfs";
    case 0x517B:
    case 0xFE534D42:
    case 0xFF534D42:
      return "smb";
    case 0x01021997:
      return "9p";
    case 0x00C36400:
      return "ceph";
    case 0x0BD00BD0:
      return "lustre";
    case 0x47504653:
      return "gpfs";
    default:
      return {};
  }
}

// A file, or nothing: whoever may write in the folder may have put there what
// an open() would wait for.
UniqueFd open_regular(int folder, const char* name, int flags) {
  UniqueFd file(::openat(folder, name,
                         O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags, 0600));
  struct stat of {};
  if (file.value() >= 0 &&
      (::fstat(file.value(), &of) != 0 || !S_ISREG(of.st_mode)))
    file.reset();
  return file;
}

// The first of some places where a folder can be made.
std::string runtime_folder() {
  const char* const of_user = std::getenv("XDG_RUNTIME_DIR");
  for (const char* const place : {of_user, "/dev/shm", "/tmp"}) {
    if (place != nullptr && *place == '/' && ::access(place, W_OK | X_OK) == 0)
      return place;
  }
  return "/tmp";
}

}  // namespace

absl::StatusOr<Folder> Folder::open(std::string path, bool read_only) {
  if (!read_only && ::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return system_error("folder", path, errno);
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.value() < 0) return system_error("folder", path, errno);
  if (const auto network = network_name(fd.value()); !network.empty()) {
    return absl::InvalidArgumentError(fmt::format(
        "folder {} is on a network file system ({}); allowed: one of this "
        "machine, e.g. under /dev/shm",
        path, network));
  }
  if (!read_only && ::faccessat(fd.value(), ".", W_OK | X_OK, 0) != 0)
    return system_error("folder", path, errno);
  // Where it is, wherever the process goes: a daemon changes its folder.
  std::error_code unknown;
  if (auto whole = std::filesystem::absolute(path, unknown); !unknown)
    path = std::move(whole).string();
  Folder opened(std::move(path), std::move(fd), read_only);
  if (auto status = opened.hold(0); !status.ok()) return status;
  return opened;
}

absl::StatusOr<Folder> Folder::make_fresh() {
  const std::string place = runtime_folder();
  remove_left_in(place);
  for (;;) {
    std::string path = fmt::format("{}/{}", place, kFreshName);
    if (::mkdtemp(path.data()) == nullptr)
      return system_error("folder", path, errno);
    auto made = open(std::move(path), /*read_only=*/false);
    if (!made.ok()) return made;
    // Not held yet, it may be taken for one that was left.
    if (made->hold(O_CREAT).ok()) return made;
  }
}

Folder::~Folder() {
  if (hold_.value() < 0) return;
  hold_.reset();  // not unlocked, which it would be for forked children too
  if (!read_only_) remove_if_left(path_);
}

// Where there is nothing to hold, the folder stays.
absl::Status Folder::hold(int flags) {
  UniqueFd file = open_regular(fd(), kHoldName, O_RDONLY | flags);
  if (file.value() < 0) return absl::OkStatus();
  const bool is_held = ::flock(file.value(), LOCK_SH | LOCK_NB) == 0;
  if (!is_held && errno != EWOULDBLOCK) return absl::OkStatus();
  struct stat now {};
  if (!is_held || ::fstat(file.value(), &now) != 0 || now.st_nlink == 0) {
    return absl::UnavailableError(fmt::format(
        "folder {} is being removed: the last process in it has ended", path_));
  }
  hold_ = std::move(file);
  return absl::OkStatus();
}

// Nobody comes while the lock is held alone; files of others keep the folder.
// Another user's folder is for that user to remove.
void Folder::remove_if_left(const std::string& path) {
  const Folder left(path,
                    UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY |
                                                      O_CLOEXEC | O_NOFOLLOW)),
                    /*read_only=*/true);
  struct stat of {};
  if (left.fd() < 0 || ::fstat(left.fd(), &of) != 0 || of.st_uid != ::geteuid())
    return;
  const UniqueFd file = open_regular(left.fd(), kHoldName, O_RDONLY);
  if (file.value() < 0 || ::flock(file.value(), LOCK_EX | LOCK_NB) != 0) return;
  std::vector<std::string> names;
  std::vector<std::string> more;
  left.list(names, more);
  names.insert(names.end(), more.begin(), more.end());
  for (const char* const name : {kFoldedName, kLockName, kHoldName})
    names.emplace_back(name);
  for (const std::string& name : names) left.remove(name);
  ::rmdir(path.c_str());
}

// What make_fresh() has made there and nobody could remove.
void Folder::remove_left_in(const std::string& place) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(place.c_str()),
                                                    ::closedir);
  if (entries == nullptr) return;
  while (const dirent* const entry = ::readdir(entries.get())) {
    const std::string_view name = entry->d_name;
    if (name.size() == kFreshName.size() && name.starts_with(kFilePrefix))
      remove_if_left(fmt::format("{}/{}", place, name));
  }
}

void Folder::list(std::vector<std::string>& segments,
                  std::vector<std::string>& unfinished) const {
  segments.clear();
  unfinished.clear();
  UniqueFd again(::openat(fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (again.value() < 0) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(again.value()),
                                                    ::closedir);
  if (entries == nullptr) return;
  again.release();  // it is the DIR's now
  while (const dirent* const entry = ::readdir(entries.get())) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with(kFilePrefix)) continue;
    if (name.ends_with(kSegmentSuffix)) segments.emplace_back(name);
    if (name.ends_with(kUnfinishedSuffix)) unfinished.emplace_back(name);
  }
  std::ranges::sort(segments);
}

void Folder::remove(const std::string& name) const {
  ::unlinkat(fd(), name.c_str(), 0);
}

UniqueFd Folder::make(const std::string& name) const {
  remove(name);
  return UniqueFd(::openat(fd(), name.c_str(),
                           O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
}

FolderLock FolderLock::try_take(const Folder& folder) {
  UniqueFd file(::openat(folder.fd(), kLockName,
                         O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                         0600));
  if (file.value() >= 0 && ::flock(file.value(), LOCK_EX | LOCK_NB) != 0)
    file.reset();
  return FolderLock(std::move(file));
}

// Not by closing alone: a child that was forked meanwhile has the file too.
FolderLock::~FolderLock() {
  if (is_held()) ::flock(file_.value(), LOCK_UN);
}

}  // namespace vllm_metrics::inline v0::shm
