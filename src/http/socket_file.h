#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace vllm_metrics::inline v0::http {

// The file of a Unix domain socket, removed when this ends, unless it is no
// longer the one that was made.
class SocketFile {
 public:
  SocketFile() noexcept = default;
  SocketFile(SocketFile&& other) noexcept
      : path_(std::exchange(other.path_, {})),
        device_(other.device_),
        inode_(other.inode_) {}
  SocketFile& operator=(SocketFile&& other) noexcept;
  ~SocketFile() { remove(); }

  // Binds `socket` to `path` with `permissions`, e.g. 0600, from its first
  // moment. A socket file that nobody listens on any more is replaced; whatever
  // else is there is an error, which says the reason and does not name `path`.
  // Of two that find the same dead file at the same time, the later has it.
  static absl::StatusOr<SocketFile> bind(int socket, const std::string& path,
                                         mode_t permissions);

  void remove() noexcept;

 private:
  std::string path_;  // empty: none
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace vllm_metrics::inline v0::http
