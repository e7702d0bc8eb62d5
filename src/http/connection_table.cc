#include "src/http/connection_table.h"

#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cassert>

namespace vllm_metrics::inline v0::http {
namespace {

using State = ConnectionTable::Connection::State;
using TimePoint = ConnectionTable::TimePoint;
using std::chrono::milliseconds;

// How long a client may take before one that has no place counts more: some
// round trips to ask, or an answer of some megabytes.
constexpr milliseconds kIdleGrace{100};
constexpr milliseconds kAnswerGrace{1000};

// Places for newcomers until those who made room are out.
constexpr std::size_t kReserve = 16;

bool has_unread_bytes(int fd) {
  int count = 0;
  return ioctl(fd, FIONREAD, &count) == 0 && count > 0;
}

}  // namespace

void ConnectionTable::Connection::begin_request(TimePoint now) {
  if (state == State::kWaiting) since = now;
  if (state != State::kCut) state = State::kRequest;
}

void ConnectionTable::Connection::end_request(TimePoint now) {
  if (state == State::kCut) return;
  state = State::kWaiting;
  since = now;
  end = End::kClient;
}

ConnectionTable::ConnectionTable(const ConnectionLimits& limits)
    : limits_(limits), connections_(limits.max_connections + kReserve) {}

ConnectionTable::Connection& ConnectionTable::open(int fd, TimePoint now) {
  trim(limits_.max_connections - 1, now);
  const auto free =
      std::ranges::find(connections_, State::kFree, &Connection::state);
  assert(free != connections_.end());
  *free = {.fd = fd, .state = State::kConnected, .since = now};
  ++size_;
  return *free;
}

void ConnectionTable::close(Connection& connection) {
  if (connection.state == State::kCut) --cut_;
  connection = {};
  --size_;
}

std::optional<TimePoint> ConnectionTable::deadline(
    const Connection& connection) const {
  switch (connection.state) {
    case State::kConnected:
    case State::kRequest:
      return connection.since + limits_.request_timeout;
    case State::kWaiting:
      return connection.since + limits_.keep_alive_timeout;
    case State::kFree:
    case State::kCut:
      break;
  }
  return std::nullopt;
}

void ConnectionTable::note_arrivals(TimePoint now) {
  for (Connection& connection : connections_) {
    if (connection.state == State::kWaiting &&
        has_unread_bytes(connection.fd)) {
      connection.begin_request(now);
    }
  }
}

void ConnectionTable::sweep(TimePoint now) {
  for (Connection& connection : connections_) {
    if (const auto due = deadline(connection); due && *due <= now) {
      cut(connection, connection.state == State::kWaiting
                          ? End::kKeepAliveTimeout
                          : End::kRequestTimeout);
    }
  }
  trim(limits_.max_connections, now);
}

std::optional<TimePoint> ConnectionTable::next_deadline() const {
  std::optional<TimePoint> next;
  for (const Connection& connection : connections_) {
    auto due = deadline(connection);
    if (due && live() > limits_.max_connections) {
      const bool idle = connection.state != State::kRequest;
      due =
          std::min(*due, connection.since + (idle ? kIdleGrace : kAnswerGrace));
    }
    if (due && (!next || *due < *next)) next = due;
  }
  return next;
}

// Who idles goes before who is slow; of each kind, who does for the longest
// time. The honest connect again.
void ConnectionTable::trim(std::size_t allowed, TimePoint now) {
  while (live() > allowed) {
    Connection* idle = nullptr;
    Connection* slow = nullptr;
    for (Connection& connection : connections_) {
      if (!deadline(connection)) continue;
      auto& oldest = connection.state == State::kRequest ? slow : idle;
      if (oldest == nullptr || connection.since < oldest->since) {
        oldest = &connection;
      }
    }
    if (idle != nullptr && now - idle->since >= kIdleGrace) {
      cut(*idle, End::kCrowdedOut);
    } else if (slow != nullptr && now - slow->since >= kAnswerGrace) {
      cut(*slow, End::kCrowdedOut);
    } else {
      return;
    }
  }
}

void ConnectionTable::cut_all() {
  for (Connection& connection : connections_) {
    if (deadline(connection)) cut(connection, End::kClient);
  }
}

void ConnectionTable::cut(Connection& connection, End end) {
  // An answer that nobody fetches is not kept in the kernel's memory either.
  if (connection.state == State::kRequest) {
    const linger drop{.l_onoff = 1, .l_linger = 0};
    setsockopt(connection.fd, SOL_SOCKET, SO_LINGER, &drop, sizeof drop);
  }
  shutdown(connection.fd, SHUT_RDWR);
  connection.state = State::kCut;
  connection.end = end;
  ++cut_;
}

}  // namespace vllm_metrics::inline v0::http
