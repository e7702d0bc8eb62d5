#include "loopback_collector.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace vllm_metrics::bench {
namespace {

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::exit(EXIT_FAILURE);
}

// One exporter's, with what it has sent since the last answer.
struct Connection {
  int fd;
  std::string head = {};
  std::size_t missing = 0;  // of the body

  // Whether that was the end of a request.
  bool take(std::string_view bytes) {
    if (missing > 0) {
      missing -= std::min(missing, bytes.size());
      return missing == 0;
    }
    head += bytes;
    const std::size_t end = head.find("\r\n\r\n");
    if (end == head.npos) return false;
    constexpr std::string_view kLength = "content-length: ";
    for (std::size_t at = 0; at < end; at = head.find("\r\n", at) + 2) {
      if (::strncasecmp(&head[at], kLength.data(), kLength.size()) == 0)
        missing = std::strtoull(&head[at + kLength.size()], nullptr, 10);
    }
    const std::size_t there = head.size() - (end + 4);
    head.clear();
    missing -= std::min(missing, there);
    return missing == 0;
  }
};

}  // namespace

LoopbackCollector::LoopbackCollector(Manner manner)
    : listener_(socket(AF_INET, SOCK_STREAM, 0)) {
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  auto* const address = reinterpret_cast<sockaddr*>(&at);
  if (bind(listener_, address, size) != 0 || listen(listener_, 16) != 0 ||
      getsockname(listener_, address, &size) != 0)
    give_up("a collector on loopback");
  url_ = "http://127.0.0.1:" + std::to_string(ntohs(at.sin_port));
  // The system takes connections and their first bytes by itself.
  if (manner == Manner::kAnswers) thread_ = std::thread([this] { serve(); });
}

LoopbackCollector::~LoopbackCollector() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
  close(listener_);
}

void LoopbackCollector::serve() {
  constexpr int kLookUpMilliseconds = 50;
  constexpr std::string_view kAnswer =
      "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
  std::vector<char> buffer(1 << 16);
  std::vector<pollfd> waiting{{listener_, POLLIN, 0}};
  std::vector<Connection> connections;
  while (!stop_) {
    poll(waiting.data(), waiting.size(), kLookUpMilliseconds);
    for (std::size_t i = 0; i < connections.size(); ++i) {
      if (waiting[i + 1].revents == 0) continue;
      Connection& from = connections[i];
      const auto got = recv(from.fd, buffer.data(), buffer.size(), 0);
      if (got <= 0) waiting[i + 1].events = 0;
      if (got > 0 && from.take({buffer.data(), static_cast<std::size_t>(got)}))
        answers_ +=
            send(from.fd, kAnswer.data(), kAnswer.size(), MSG_NOSIGNAL) > 0;
    }
    if (waiting[0].revents == 0) continue;
    connections.push_back({accept(listener_, nullptr, nullptr)});
    waiting.push_back({connections.back().fd, POLLIN, 0});
  }
  for (const Connection& connection : connections) close(connection.fd);
}

}  // namespace vllm_metrics::bench
