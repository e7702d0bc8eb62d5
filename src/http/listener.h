#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "src/http/socket_file.h"
#include "src/registry/unique_fd.h"

namespace vllm_metrics::inline v0::http {

struct Listener {
  UniqueFd socket;   // non-blocking, listening
  int port = 0;      // the real one; 0 for a Unix domain socket
  std::string name;  // "127.0.0.1:8000", "[::1]:8000", "unix:/run/engine.sock"
  SocketFile file;   // of a Unix domain socket
};

struct ListenerOptions {
  std::string address;  // numeric, or "unix:" and a path
  int port = 0;
  bool allow_all_interfaces = false;
  int unix_permissions = 0600;
};

// Errors name the address, the port and the reason.
//
// MHD could do it, but neither says why it failed nor refuses a port that a
// second endpoint of the same user has, once it sets SO_REUSEPORT.
absl::StatusOr<Listener> start_listening(const ListenerOptions& options);

}  // namespace vllm_metrics::inline v0::http
