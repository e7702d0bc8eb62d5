#include "src/http/listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace vllm_metrics::inline v0::http {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";

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

// IPv4's 0.0.0.0 in any spelling, IPv6's ::, and the one within the other.
bool is_every_interface(const addrinfo& where) {
  if (where.ai_family == AF_INET) {
    sockaddr_in name{};
    std::memcpy(&name, where.ai_addr, sizeof name);
    return name.sin_addr.s_addr == htonl(INADDR_ANY);
  }
  sockaddr_in6 name{};
  std::memcpy(&name, where.ai_addr, sizeof name);
  constexpr in6_addr kMapped = {
      {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0}}};
  return IN6_IS_ADDR_UNSPECIFIED(&name.sin6_addr) ||
         std::memcmp(&name.sin6_addr, &kMapped, sizeof kMapped) == 0;
}

absl::StatusOr<Listener> listen_on_network(const ListenerOptions& options) {
  const std::string& address = options.address;
  // An empty address or one with a zero byte would be cut to another one.
  const bool whole =
      !address.empty() && address.find('\0') == std::string::npos;
  const AddressList where = whole ? resolve_numeric(address, options.port)
                                  : AddressList(nullptr, nullptr);
  if (where == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "address = \"", address,
        "\" is not a numeric IPv4 or IPv6 address; allowed are those of this "
        "machine, e.g. 127.0.0.1, 0.0.0.0, ::1, ::, and unix:/path"));
  }
  if (is_every_interface(*where) && !options.allow_all_interfaces) {
    return absl::InvalidArgumentError(
        absl::StrCat("address = \"", address,
                     "\" is every interface of this machine; allowed only with "
                     "allow_all_interfaces = true"));
  }
  const bool is_ipv6 = where->ai_family == AF_INET6;
  const std::string host = is_ipv6 ? absl::StrCat("[", address, "]") : address;
  UniqueFd fd(socket(where->ai_family,
                     SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (fd.value() < 0 || !bind_and_listen(fd.value(), *where)) {
    return absl::ErrnoToStatus(errno, absl::StrCat(host, ":", options.port));
  }
  const int port = bound_port(fd.value());
  return Listener{.socket = std::move(fd),
                  .port = port,
                  .name = absl::StrCat(host, ":", port),
                  .file = {}};
}

absl::StatusOr<Listener> listen_on_file(const ListenerOptions& options) {
  const std::string& name = options.address;
  const std::string path = name.substr(kUnixPrefix.size());
  // From elsewhere, a relative one would name another file when it is removed.
  if (!path.starts_with('/') || path.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        "address = \"", name, "\" is not unix: and an absolute path"));
  }
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.value() < 0) return absl::ErrnoToStatus(errno, name);
  auto file = SocketFile::bind(fd.value(), path,
                               static_cast<mode_t>(options.unix_permissions));
  if (!file.ok()) {
    return absl::Status(file.status().code(),
                        absl::StrCat(name, ": ", file.status().message()));
  }
  if (listen(fd.value(), SOMAXCONN) != 0) {
    return absl::ErrnoToStatus(errno, name);
  }
  return Listener{.socket = std::move(fd),
                  .port = 0,
                  .name = name,
                  .file = *std::move(file)};
}

}  // namespace

absl::StatusOr<Listener> start_listening(const ListenerOptions& options) {
  return options.address.starts_with(kUnixPrefix) ? listen_on_file(options)
                                                  : listen_on_network(options);
}

}  // namespace vllm_metrics::inline v0::http
