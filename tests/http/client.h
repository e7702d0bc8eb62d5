#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>

// A client of one connection, written against sockets so that a test can do
// what no well-behaved client does. A read that gets nothing for 20 s fails
// the test: a guard against hanging, no part of what is tested.
class Client {
 public:
  struct Answer {
    int status = 0;
    std::map<std::string, std::string> headers;  // names in lower case,
                                                 // one line per value
    std::string body;
  };

  explicit Client(int port, int receive_buffer = 0) : Client(Family{AF_INET}) {
    if (receive_buffer > 0) {
      setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer,
                 sizeof receive_buffer);
    }
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<in_port_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connect_to(to);
  }
  explicit Client(const std::string& path) : Client(Family{AF_UNIX}) {
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    path.copy(to.sun_path, sizeof to.sun_path - 1);
    connect_to(to);
  }
  ~Client() { close(fd_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool connected() const { return connected_; }
  int fd() const { return fd_; }

  // False once the connection is gone.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  // Waits up to `milliseconds` for the server to close or drop the connection,
  // whatever is still unread.
  bool cut_within(int milliseconds) {
    pollfd end{.fd = fd_, .events = POLLRDHUP, .revents = 0};
    return poll(&end, 1, milliseconds) == 1;
  }

  // The next answer; status 0 when the connection ended before it was whole.
  Answer read_answer(bool has_body = true) {
    std::size_t head_end = 0;
    while ((head_end = unread_.find("\r\n\r\n")) == std::string::npos) {
      if (!read_some()) return {};
    }
    Answer answer;
    const std::string head = unread_.substr(0, head_end + 2);
    unread_.erase(0, head_end + 4);
    std::size_t at = head.find("\r\n") + 2;
    while (at < head.size()) {
      const auto end = head.find("\r\n", at);
      const auto colon = head.find(": ", at);
      std::string name = head.substr(at, colon - at);
      for (char& c : name) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
      }
      std::string& value = answer.headers[name];
      if (!value.empty()) value += '\n';
      value += head.substr(colon + 2, end - colon - 2);
      at = end + 2;
    }
    const auto length = answer.headers.find("content-length");
    if (has_body && length != answer.headers.end()) {
      const auto size = std::stoul(length->second);
      while (unread_.size() < size) {
        if (!read_some()) return {};
      }
      answer.body = unread_.substr(0, size);
      // Nor does a client keep the memory of a page.
      std::string(unread_, size).swap(unread_);
    }
    answer.status = std::stoi(head.substr(head.find(' ') + 1, 3));
    return answer;
  }

  // Everything until the server closes, without interpreting it.
  std::string read_to_end() {
    while (read_some()) {
    }
    return std::exchange(unread_, {});
  }

  Answer get(std::string_view path, std::string_view headers = "") {
    send("GET " + std::string(path) + " HTTP/1.1\r\nHost: test\r\n" +
         std::string(headers) + "\r\n");
    return read_answer();
  }

 private:
  struct Family {
    int value;
  };
  explicit Client(Family family)
      : fd_(socket(family.value, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval guard{.tv_sec = 20, .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &guard, sizeof guard);
  }

  template <class Address>
  void connect_to(const Address& to) {
    connected_ =
        connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }

  bool read_some() {
    char buffer[65536];
    const auto size = recv(fd_, buffer, sizeof buffer, 0);
    if (size < 0 && errno == EAGAIN) FAIL("no answer for 20 s");
    if (size > 0) unread_.append(buffer, static_cast<std::size_t>(size));
    return size > 0;
  }

  int fd_;
  bool connected_ = false;
  std::string unread_;
};

inline Client::Answer get(int port, std::string_view path,
                          std::string_view headers = "") {
  return Client(port).get(path, headers);
}
