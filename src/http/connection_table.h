#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace vllm_metrics::inline v0::http {

struct ConnectionLimits {
  std::size_t max_connections;
  std::chrono::milliseconds request_timeout;
  std::chrono::milliseconds keep_alive_timeout;
};

// What each client is doing, since when, and who has to go: MHD's own timeout
// is one of inactivity, which a byte a second satisfies, and at its limit it
// leaves newcomers outside.
//
// Cutting off shuts the socket down; MHD then sees the end of the connection
// and closes it.
//
// Thread-safety: one thread. Time is passed in.
class ConnectionTable {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // Why a connection ended, in the order of the catalogue's reasons.
  enum class End : std::uint8_t {
    kClient,
    kNoRequest,
    kRequestTimeout,
    kKeepAliveTimeout,
    kCrowdedOut,
  };

  struct Connection {
    void begin_request(TimePoint now);
    void end_request(TimePoint now);

    enum class State {
      kFree,       // no connection
      kConnected,  // its first request is not whole
      kRequest,    // a request has begun, its answer is not sent
      kWaiting,    // for its next request
      kCut,        // shut down, not closed
    };
    int fd = -1;
    State state = State::kFree;
    TimePoint since;             // begin of what the deadline is about
    End end = End::kNoRequest;   // when nothing else happens
    std::size_t body_bytes = 0;  // of the answer that is being sent
  };

  explicit ConnectionTable(const ConnectionLimits& limits);

  // Not when full().
  Connection& open(int fd, TimePoint now);
  void close(Connection& connection);

  // Looks who began a request, while MHD has not read it.
  void note_arrivals(TimePoint now);

  // Cuts off who is overdue or one too many.
  void sweep(TimePoint now);

  void cut_all();

  // When sweep() has something to do even if nothing arrives.
  std::optional<TimePoint> next_deadline() const;

  // Above the limit there is a reserve, so that a newcomer is in before an old
  // one is out. Only when that is used up do others wait in the kernel.
  std::size_t capacity() const { return connections_.size(); }
  std::size_t size() const { return size_; }
  bool full() const { return size_ == capacity(); }
  bool at_limit() const { return live() >= limits_.max_connections; }

 private:
  std::optional<TimePoint> deadline(const Connection& connection) const;
  std::size_t live() const { return size_ - cut_; }
  void trim(std::size_t allowed, TimePoint now);
  void cut(Connection& connection, End end);

  ConnectionLimits limits_;
  std::vector<Connection> connections_;
  std::size_t size_ = 0;
  std::size_t cut_ = 0;  // of them
};

}  // namespace vllm_metrics::inline v0::http
