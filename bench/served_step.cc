#include "served_step.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "contest.h"
#include "engines.h"
#include "step_data.h"
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

// Everybody who wants something of the endpoint, on a thread of their own.
class Crowd {
 public:
  explicit Crowd(int port) : thread_([this, port] { run(port); }) {
    while (scrapes_.load() < 200) std::this_thread::yield();
  }
  ~Crowd() { stop(); }

  double scrapes_per_second() {
    stop();
    return static_cast<double>(scrapes_.load()) / seconds_;
  }

 private:
  void run(int port) {
    using Clock = std::chrono::steady_clock;
    constexpr std::string_view kRequest =
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    std::deque<Connection> scrapers;
    std::deque<Connection> tricklers;
    std::deque<Connection> silent;
    for (int i = 0; i < 200; ++i) scrapers.emplace_back(port);
    for (int i = 0; i < 50; ++i) tricklers.emplace_back(port);
    for (int i = 0; i < 50; ++i) silent.emplace_back(port);
    const auto start = Clock::now();
    for (std::size_t i = 0; !stop_.load(std::memory_order_relaxed); ++i) {
      scrapers[i % scrapers.size()].send(kRequest);
      scrapers[i % scrapers.size()].receive();
      if (i % 20 == 0) tricklers[i / 20 % tricklers.size()].send("G");
      scrapes_.fetch_add(1, std::memory_order_relaxed);
    }
    seconds_ = std::chrono::duration<double>(Clock::now() - start).count();
  }
  void stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }

  std::atomic<bool> stop_{false};
  std::atomic<std::size_t> scrapes_{0};
  double seconds_ = 1.0;
  std::thread thread_;
};

}  // namespace

ScrapedStep time_served_step(std::size_t count) {
  static const auto steps = make_steps({});
  const auto manager = make_manager(prometheus_only(1));
  auto exposer = http::Exposer::start(manager->registry(),
                                      {.port = 0, .max_connections = 400});
  if (!exposer.ok()) give_up(exposer.status().ToString().c_str());
  time_steps(*manager, steps, 300);
  const auto idle = time_steps(*manager, steps, count);
  Crowd crowd((*exposer)->port());
  const auto served = time_steps(*manager, steps, count);
  return {median(idle), quantile(idle, 0.99), median(served),
          quantile(served, 0.99), crowd.scrapes_per_second()};
}

}  // namespace vllm_metrics::bench
