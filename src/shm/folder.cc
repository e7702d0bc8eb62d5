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
#include <memory>
#include <utility>

#include "src/shm/segment.h"

namespace vllm_metrics::inline v0::shm {
namespace {

constexpr const char* kLockName = "vllm_metrics.lock";

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
  return Folder(std::move(path), std::move(fd));
}

absl::StatusOr<Folder> Folder::make_fresh() {
  std::string path = runtime_folder() + "/vllm_metrics-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr)
    return system_error("folder", path, errno);
  return open(std::move(path), /*read_only=*/false);
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

FolderLock FolderLock::try_take(const Folder& folder) {
  UniqueFd file(::openat(folder.fd(), kLockName,
                         O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.value() >= 0 && ::flock(file.value(), LOCK_EX | LOCK_NB) != 0)
    file.reset();
  return FolderLock(std::move(file));
}

// Not by closing alone: a child that was forked meanwhile has the file too.
FolderLock::~FolderLock() {
  if (is_held()) ::flock(file_.value(), LOCK_UN);
}

}  // namespace vllm_metrics::inline v0::shm
