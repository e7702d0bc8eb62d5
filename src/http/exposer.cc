#include "vllm_metrics/http/exposer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "src/http/access.h"
#include "src/http/listener.h"
#include "src/http/server.h"
#include "src/http/tls.h"

namespace vllm_metrics::inline v0::http {
namespace {

struct Range {
  std::int64_t lowest, highest;
};

absl::Status check_range(const char* name, std::int64_t value, Range allowed,
                         const char* unit = "") {
  if (value >= allowed.lowest && value <= allowed.highest) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(name, " = ", value, unit, "; allowed: ", allowed.lowest,
                   " to ", allowed.highest, unit));
}

absl::Status check_permissions(int value) {
  if (value >= 0 && value <= 0777) return absl::OkStatus();
  const std::string octal =
      value < 0 ? absl::StrCat(value) : fmt::format("0{:o}", value);
  return absl::InvalidArgumentError(absl::StrCat(
      "unix_permissions = ", octal, "; allowed: 0 to 0777, octal"));
}

bool may_be_path(const std::string& path) {
  const auto is_wrong = [](char c) {
    return c <= ' ' || c > '~' || c == '?' || c == '#' || c == '%';
  };
  return path.starts_with('/') && path.size() <= 256 && path != "/metrics" &&
         path != "/metrics/" && std::ranges::none_of(path, is_wrong);
}

absl::Status check_health_path(const std::string& path) {
  if (path.empty() || may_be_path(path)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "health_path = \"", absl::CHexEscape(path),
      "\"; allowed: none, or / and up to 255 printable ASCII characters, none "
      "of them a blank, ?, # or %; not /metrics"));
}

absl::Status check_extra_pages(const ExposerOptions& options) {
  constexpr std::int64_t kMaxBody = std::int64_t{1} << 20;
  std::vector<std::string_view> taken = {options.health_path};
  for (const ExtraPage& page : options.extra_pages) {
    const bool is_new = std::ranges::find(taken, page.path) == taken.end();
    if (!may_be_path(page.path) || !is_new) {
      return absl::InvalidArgumentError(absl::StrCat(
          "extra_pages: path = \"", absl::CHexEscape(page.path),
          "\"; allowed: / and up to 255 printable ASCII characters, none of "
          "them a blank, ?, # or %; not /metrics, health_path, or that of "
          "another page"));
    }
    if (page.answer == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("extra_pages: ", page.path, " has no answer"));
    }
    const auto size = static_cast<std::int64_t>(
        std::min(page.max_body_bytes, static_cast<std::size_t>(kMaxBody) + 1));
    if (absl::Status status =
            check_range("extra_pages: max_body_bytes", size, {0, kMaxBody});
        !status.ok()) {
      return status;
    }
    taken.push_back(page.path);
  }
  return absl::OkStatus();
}

absl::Status check(const ExposerOptions& options) {
  constexpr std::int64_t kHourMs = 3'600'000;
  const absl::Status checks[] = {
      check_range("port", options.port, {0, 65535}),
      check_health_path(options.health_path),
      check_extra_pages(options),
      check_permissions(options.unix_permissions),
      check_range("max_connections", options.max_connections, {1, 1024}),
      check_range("request_timeout", options.request_timeout.count(),
                  {1, kHourMs}, " ms"),
      check_range("keep_alive_timeout", options.keep_alive_timeout.count(),
                  {1, 24 * kHourMs}, " ms"),
      check_range("connection_memory_bytes", options.connection_memory_bytes,
                  {4096, 1048576}),
  };
  for (const absl::Status& status : checks) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Exposer>> Exposer::start(
    std::shared_ptr<Registry> registry, ExposerOptions options) {
  if (registry == nullptr) {
    return absl::InvalidArgumentError("registry is null");
  }
  if (auto status = check(options); !status.ok()) return status;
  auto access = Access::create(options);
  if (!access.ok()) return access.status();
  const auto tls = tls_identity(options);
  if (!tls.ok()) return tls.status();
  auto listener =
      start_listening({.address = options.address,
                       .port = options.port,
                       .allow_all_interfaces = options.allow_all_interfaces,
                       .unix_permissions = options.unix_permissions});
  if (!listener.ok()) return listener.status();
  auto server =
      std::make_unique<Server>(std::move(registry), std::move(options),
                               *std::move(access), *std::move(listener));
  if (auto status = server->start(*tls); !status.ok()) return status;
  return std::unique_ptr<Exposer>(new Exposer(std::move(server)));
}

Exposer::Exposer(std::unique_ptr<Server> server) : server_(std::move(server)) {}

Exposer::~Exposer() {
  stop();
  // Of the thread and of MHD's sockets a child has only the memory: destroying
  // them would wait for the one and act on the parent's others.
  if (!server_->in_own_process()) static_cast<void>(server_.release());
}

int Exposer::port() const { return server_->listener().port; }

std::string Exposer::url() const {
  const Listener& listener = server_->listener();
  const bool is_network = listener.port != 0;
  return absl::StrCat(server_->has_tls() ? "https://" : "http://",
                      listener.name, is_network ? "" : ":", "/metrics");
}

void Exposer::stop() {
  if (server_->in_own_process()) {
    server_->stop();
  } else {
    server_->close_inherited();
  }
}

}  // namespace vllm_metrics::inline v0::http
