#include "vllm_metrics/http/exposer.h"

#include <chrono>
#include <cstdint>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/http/listener.h"
#include "src/http/server.h"

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

absl::Status check(const ExposerOptions& options) {
  constexpr std::int64_t kHourMs = 3'600'000;
  const absl::Status checks[] = {
      check_range("port", options.port, {0, 65535}),
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
  auto listener = listen_on(options.address, options.port);
  if (!listener.ok()) return listener.status();
  auto server = std::make_unique<Server>(
      std::move(registry), std::move(options), *std::move(listener));
  if (auto status = server->start(); !status.ok()) return status;
  return std::unique_ptr<Exposer>(new Exposer(std::move(server)));
}

Exposer::Exposer(std::unique_ptr<Server> server) : server_(std::move(server)) {}

Exposer::~Exposer() {
  stop();
  // Of the thread and of MHD's sockets a child has only the memory: destroying
  // them would wait for the one and act on the parent's others.
  if (!server_->in_own_process()) static_cast<void>(server_.release());
}

int Exposer::port() const { return server_->port(); }

std::string Exposer::url() const {
  return absl::StrCat("http://", server_->host(), ":", server_->port(),
                      "/metrics");
}

void Exposer::stop() {
  if (server_->in_own_process()) {
    server_->stop();
  } else {
    server_->close_inherited();
  }
}

}  // namespace vllm_metrics::inline v0::http
