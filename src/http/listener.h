#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "src/http/unique_fd.h"

namespace vllm_metrics::inline v0::http {

struct Listener {
  UniqueFd socket;   // non-blocking, listening
  int port = 0;      // the real one
  std::string host;  // as in a URL: IPv6 addresses in brackets
};

// Listens on `port` of `address`, numeric. Errors name both and the reason.
//
// MHD could do it, but neither says why it failed nor refuses a port that a
// second endpoint of the same user has, once it sets SO_REUSEPORT.
absl::StatusOr<Listener> listen_on(const std::string& address, int port);

}  // namespace vllm_metrics::inline v0::http
