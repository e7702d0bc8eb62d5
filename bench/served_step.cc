#include "served_step.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <string_view>

#include "engines.h"
#include "vllm_metrics/http/exposer.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"

namespace vllm_metrics::bench {
namespace {

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::exit(EXIT_FAILURE);
}

class Connection {
 public:
  explicit Connection(int port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<in_port_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
      give_up("connect");
  }
  Connection(const Connection&) = delete;
  ~Connection() { close(fd_); }

  // May fail: a client that trickles is cut off in the end.
  void send(std::string_view text) {
    ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
  }

  // One whole answer.
  void receive() {
    constexpr std::string_view kLength = "Content-Length: ";
    std::string head;
    std::size_t body = std::string::npos;
    while ((body = head.find("\r\n\r\n")) == std::string::npos)
      head.append(buffer_, read_some());
    const std::size_t at = head.find(kLength);
    if (!head.starts_with("HTTP/1.1 200") || at == std::string::npos)
      give_up(head.c_str());
    std::size_t missing =
        body + 4 + std::strtoull(&head[at + kLength.size()], nullptr, 10) -
        head.size();
    while (missing > 0) missing -= read_some();
  }

 private:
  std::size_t read_some() {
    const auto got = recv(fd_, buffer_, sizeof buffer_, 0);
    if (got <= 0) give_up("recv");
    return static_cast<std::size_t>(got);
  }

  int fd_;
  char buffer_[1 << 16];
};

// Everybody who wants something of the endpoint.
class Crowd {
 public:
  explicit Crowd(int port) {
    for (int i = 0; i < 200; ++i) scrapers_.emplace_back(port);
    for (int i = 0; i < 50; ++i) tricklers_.emplace_back(port);
    for (int i = 0; i < 50; ++i) silent_.emplace_back(port);
  }

  // The next of the scrapers; after some of them a byte of a trickler.
  void scrape() {
    Connection& next = scrapers_[turn_ % scrapers_.size()];
    next.send("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    next.receive();
    if (turn_ % 20 == 0) tricklers_[turn_ / 20 % tricklers_.size()].send("G");
    ++turn_;
  }

 private:
  std::deque<Connection> scrapers_;
  std::deque<Connection> tricklers_;
  std::deque<Connection> silent_;
  std::size_t turn_ = 0;
};

}  // namespace

ScrapedStep time_served_step(std::size_t count) {
  const auto manager = make_manager(prometheus_only(1));
  auto exposer = http::Exposer::start(manager->registry(),
                                      {.port = 0, .max_connections = 400});
  if (!exposer.ok()) give_up(exposer.status().ToString().c_str());
  Crowd crowd((*exposer)->port());
  return time_disturbed_step(*manager, count, [&crowd] { crowd.scrape(); });
}

}  // namespace vllm_metrics::bench
