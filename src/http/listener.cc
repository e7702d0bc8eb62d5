#include "src/http/listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace vllm_metrics::inline v0::http {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

AddressList resolve_numeric(const std::string& address, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  addrinfo* found = nullptr;
  const std::string service = absl::StrCat(port);
  if (getaddrinfo(address.c_str(), service.c_str(), &hints, &found) != 0) {
    found = nullptr;
  }
  return {found, &freeaddrinfo};
}

bool switch_option(int fd, int level, int name, int value) {
  return setsockopt(fd, level, name, &value, sizeof value) == 0;
}

bool bind_and_listen(int fd, const addrinfo& where) {
  // So that a restart need not wait for the last run's connections to expire.
  // Two listening sockets still never share a port on Linux.
  if (!switch_option(fd, SOL_SOCKET, SO_REUSEADDR, 1)) return false;
  // "::" means IPv4 too, whatever the system's default.
  if (where.ai_family == AF_INET6 &&
      !switch_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0)) {
    return false;
  }
  return bind(fd, where.ai_addr, where.ai_addrlen) == 0 &&
         listen(fd, SOMAXCONN) == 0;
}

int bound_port(int fd) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) != 0) {
    return 0;
  }
  // Both structs have it in the same place.
  std::uint16_t port = 0;
  static_assert(offsetof(sockaddr_in, sin_port) ==
                offsetof(sockaddr_in6, sin6_port));
  std::memcpy(
      &port,
      reinterpret_cast<const char*>(&name) + offsetof(sockaddr_in, sin_port),
      sizeof port);
  return ntohs(port);
}

}  // namespace

absl::StatusOr<Listener> listen_on(const std::string& address, int port) {
  // An empty address or one with a zero byte would be cut to another one.
  const bool whole =
      !address.empty() && address.find('\0') == std::string::npos;
  const AddressList where =
      whole ? resolve_numeric(address, port) : AddressList(nullptr, nullptr);
  if (where == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "address = \"", address,
        "\" is not a numeric IPv4 or IPv6 address; allowed are those of this "
        "machine, e.g. 127.0.0.1, 0.0.0.0, ::1, ::"));
  }
  const bool is_ipv6 = where->ai_family == AF_INET6;
  std::string host = is_ipv6 ? absl::StrCat("[", address, "]") : address;
  UniqueFd fd(socket(where->ai_family,
                     SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (fd.value() < 0 || !bind_and_listen(fd.value(), *where)) {
    return absl::ErrnoToStatus(errno, absl::StrCat(host, ":", port));
  }
  const int real_port = bound_port(fd.value());
  return Listener{std::move(fd), real_port, std::move(host)};
}

}  // namespace vllm_metrics::inline v0::http
