#include "src/http/connection_table.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <optional>
#include <vector>

#include "src/registry/unique_fd.h"

using std::chrono::milliseconds;
using std::chrono::seconds;
using vllm_metrics::UniqueFd;
using vllm_metrics::http::ConnectionTable;

using State = ConnectionTable::Connection::State;
using TimePoint = ConnectionTable::TimePoint;

namespace {

// Seconds of a clock that the test moves.
TimePoint at(double time) {
  return TimePoint(std::chrono::duration_cast<TimePoint::duration>(
      std::chrono::duration<double>(time)));
}

// The server's end of a connection, and the client's.
struct Pair {
  Pair() {
    std::array<int, 2> fds{};
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, fds.data()) == 0);
    server = UniqueFd(fds[0]);
    client = UniqueFd(fds[1]);
  }
  UniqueFd server, client;
};

// A table of at most two connections: 10 s a request, 60 s between them.
struct Table {
  ConnectionTable::Connection& open(double time) {
    pairs.emplace_back();
    return table.open(pairs.back().server.value(), at(time));
  }

  ConnectionTable table{{.max_connections = 2,
                         .request_timeout = seconds(10),
                         .keep_alive_timeout = seconds(60)}};
  std::vector<Pair> pairs;
};

bool is_shut_down(const Pair& pair) {
  char byte = 0;
  return recv(pair.client.value(), &byte, 1, MSG_DONTWAIT) == 0;
}

}  // namespace

TEST_CASE(
    "ConnectionTable: a first request has until its deadline, begun or not",
    "[http]") {
  Table t;
  auto& connection = t.open(100.0);
  if (GENERATE(false, true)) connection.begin_request(at(105.0));
  CHECK(t.table.next_deadline() == at(110.0));
  t.table.sweep(at(109.999));
  CHECK_FALSE(is_shut_down(t.pairs[0]));
  t.table.sweep(at(110.0));
  CHECK(is_shut_down(t.pairs[0]));
  CHECK(connection.state == State::kCut);
  CHECK(t.table.next_deadline() == std::nullopt);
}

TEST_CASE("ConnectionTable: a later request has its time from its beginning",
          "[http]") {
  Table t;
  auto& connection = t.open(100.0);
  connection.begin_request(at(101.0));
  connection.end_request(at(102.0));
  CHECK(t.table.next_deadline() == at(162.0));
  t.table.sweep(at(161.999));
  CHECK_FALSE(is_shut_down(t.pairs[0]));
  SECTION("with a request") {
    connection.begin_request(at(161.999));
    connection.begin_request(at(165.0));  // its headers are whole
    CHECK(t.table.next_deadline() == at(171.999));
  }
  SECTION("without one") {
    t.table.sweep(at(162.0));
    CHECK(is_shut_down(t.pairs[0]));
  }
}

TEST_CASE("ConnectionTable: a newcomer takes the place of the longest idle",
          "[http]") {
  Table t;
  auto& first = t.open(1.0);
  auto& second = t.open(1.5);
  SECTION("who never asked") {
    t.open(2.0);
    CHECK(first.state == State::kCut);
    CHECK(second.state == State::kConnected);
  }
  SECTION("who was answered before the other came") {
    first.begin_request(at(1.1));
    first.end_request(at(1.6));
    t.open(2.0);
    CHECK(first.state == State::kWaiting);
    CHECK(second.state == State::kCut);
  }
}

TEST_CASE("ConnectionTable: nobody goes within his tenth of a second to ask",
          "[http]") {
  Table t;
  auto& first = t.open(1.0);
  auto& second = t.open(1.05);
  t.open(1.0625);
  CHECK(t.table.next_deadline() == at(1.1));
  t.table.sweep(at(1.0999));
  CHECK(first.state == State::kConnected);
  t.table.sweep(at(1.1));
  CHECK(first.state == State::kCut);
  t.table.sweep(at(2.0));  // no longer above the limit
  CHECK(second.state == State::kConnected);
}

TEST_CASE("ConnectionTable: nobody goes within his second to be answered",
          "[http]") {
  Table t;
  auto& first = t.open(1.0);
  auto& second = t.open(1.0);
  first.begin_request(at(1.0));
  second.begin_request(at(1.0));
  auto& third = t.open(1.95);
  CHECK(t.table.next_deadline() == at(2.0));
  t.table.sweep(at(1.9999));
  CHECK(first.state == State::kRequest);
  t.table.sweep(at(2.0));
  CHECK(first.state == State::kCut);
  CHECK(second.state == State::kRequest);
  CHECK(third.state == State::kConnected);
}

TEST_CASE("ConnectionTable: who was cut off stays so until it is closed",
          "[http]") {
  Table t;
  auto& first = t.open(1.0);
  t.table.sweep(at(11.0));
  first.begin_request(at(12.0));
  first.end_request(at(13.0));
  CHECK(first.state == State::kCut);
  CHECK(t.table.next_deadline() == std::nullopt);
  t.table.close(first);
  CHECK(first.state == State::kFree);
}

TEST_CASE("ConnectionTable: is full above its limit, and has room again",
          "[http]") {
  Table t;
  std::vector<ConnectionTable::Connection*> open;
  while (!t.table.full()) open.push_back(&t.open(1.0));
  CHECK(open.size() == t.table.capacity());
  CHECK(open.size() > 2);
  t.table.close(*open.front());
  CHECK_FALSE(t.table.full());
}

TEST_CASE("ConnectionTable: cut_all ends every connection", "[http]") {
  Table t;
  t.open(1.0);
  auto& waiting = t.open(1.0);
  waiting.begin_request(at(1.0));
  waiting.end_request(at(1.0));
  t.table.cut_all();
  CHECK(is_shut_down(t.pairs[0]));
  CHECK(is_shut_down(t.pairs[1]));
}
