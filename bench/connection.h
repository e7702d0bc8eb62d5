#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace vllm_metrics::bench {

[[noreturn]] inline void give_up(const char* what) {
  std::perror(what);
  std::exit(EXIT_FAILURE);
}

// A client on loopback that keeps its connection.
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

  void get(std::string_view path) {
    send("GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    receive();
  }

  // One whole answer; ends the program without one.
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

}  // namespace vllm_metrics::bench
