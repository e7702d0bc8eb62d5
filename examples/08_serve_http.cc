// How does Prometheus get at the page?
//
// Through an Exposer, which serves it from one thread of its own. This program
// takes any free port, asks itself once, as a scraper would, and stops; an
// engine names its port and goes on.

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>

#include "vllm_metrics/http/exposer.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"

namespace {

using namespace vllm_metrics;

// What the server answers to `GET /metrics`; empty when it cannot be reached.
std::string scrape(int port) {
  const int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (connect(connection, reinterpret_cast<const sockaddr*>(&address),
              sizeof address) == 0) {
    constexpr std::string_view kRequest =
        "GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n";
    send(connection, kRequest.data(), kRequest.size(), MSG_NOSIGNAL);
    char part[4096];
    for (ssize_t n = 0; (n = recv(connection, part, sizeof part, 0)) > 0;) {
      answer.append(part, static_cast<std::size_t>(n));
    }
  }
  close(connection);
  return answer;
}

}  // namespace

int main() {
  const auto manager = StatLoggerManager::create(
      {.model_name = "tiny-1b", .max_model_len = 4096});
  if (!manager.ok()) {
    std::cerr << manager.status() << '\n';
    return 1;
  }
  // [serve]
  auto endpoint = http::Exposer::start((*manager)->registry(),
                                       {.address = "127.0.0.1", .port = 0});
  if (!endpoint.ok()) {
    std::cerr << endpoint.status() << '\n';  // e.g. the port is taken
    return 1;
  }
  std::cout << "serving " << (*endpoint)->url() << '\n';
  // [/serve]

  const SchedulerStats scheduler{.num_running_reqs = 3};
  (*manager)->record(&scheduler, nullptr);
  const std::string answer = scrape((*endpoint)->port());
  (*endpoint)->stop();

  std::cout << answer.substr(0, answer.find('\r')) << '\n';
  const bool recorded =
      answer.find(
          "vllm:num_requests_running{engine=\"0\","
          "model_name=\"tiny-1b\"} 3.0\n") != std::string::npos;
  return recorded ? 0 : 1;
}
