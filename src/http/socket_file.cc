#include "src/http/socket_file.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/registry/unique_fd.h"

namespace vllm_metrics::inline v0::http {
namespace {

// What a path is bound or connected to; nothing when it is too long.
std::optional<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  if (path.size() >= sizeof address.sun_path) return std::nullopt;
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, path.size());
  return address;
}

const sockaddr* generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

bool is_socket(const std::string& path) {
  struct stat file {};
  return lstat(path.c_str(), &file) == 0 && S_ISSOCK(file.st_mode);
}

// True when no process listens on the socket there.
bool is_dead(const sockaddr_un& address) {
  // Not to wait for one whose queue is full.
  const UniqueFd probe(
      socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return connect(probe.value(), generic(address), sizeof address) != 0 &&
         errno == ECONNREFUSED;
}

}  // namespace

SocketFile& SocketFile::operator=(SocketFile&& other) noexcept {
  remove();
  path_ = std::exchange(other.path_, {});
  device_ = other.device_;
  inode_ = other.inode_;
  return *this;
}

absl::StatusOr<SocketFile> SocketFile::bind(int socket, const std::string& path,
                                            mode_t permissions) {
  const auto address = address_of(path);
  if (!address) {
    return absl::InvalidArgumentError(
        absl::StrCat("the path has ", path.size(), " bytes; allowed: up to ",
                     sizeof(sockaddr_un::sun_path) - 1));
  }
  const auto try_bind = [&] {
    return ::bind(socket, generic(*address), sizeof *address) == 0;
  };
  // Linux gives the file the permissions of the socket, less the umask's.
  bool bound = fchmod(socket, permissions) == 0 && try_bind();
  if (!bound && errno == EADDRINUSE) {
    if (!is_socket(path)) {
      return absl::AlreadyExistsError("a file is there that is no socket");
    }
    if (!is_dead(*address)) {
      return absl::ErrnoToStatus(EADDRINUSE, "bind");
    }
    bound = unlink(path.c_str()) == 0 && try_bind();
  }
  struct stat file {};
  if (!bound || lstat(path.c_str(), &file) != 0) {
    return absl::ErrnoToStatus(errno, "bind");
  }
  SocketFile made;
  made.path_ = path;
  made.device_ = file.st_dev;
  made.inode_ = file.st_ino;
  if (chmod(path.c_str(), permissions) != 0) {
    return absl::ErrnoToStatus(errno, "chmod");
  }
  return made;
}

void SocketFile::remove() noexcept {
  struct stat file {};
  if (!path_.empty() && lstat(path_.c_str(), &file) == 0 &&
      file.st_dev == device_ && file.st_ino == inode_) {
    unlink(path_.c_str());
  }
  path_.clear();
}

}  // namespace vllm_metrics::inline v0::http
