#include "src/otlp/delivery.h"

#include <zlib.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tests/loggers/surroundings.h"
#include "tests/otlp/received.h"

namespace vllm_metrics::otlp {
namespace {

using testing::ManualClock;
using testing::ScriptedTransport;

struct Bench {
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  std::shared_ptr<ScriptedTransport> transport =
      std::make_shared<ScriptedTransport>();
  std::vector<double> pauses = {};
  Settings settings = {.url = "http://c/v1/metrics"};

  Delivery delivery() {
    return {settings, transport, clock, [this](double seconds) {
              pauses.push_back(seconds);
              clock->advance(seconds);
              return true;
            }};
  }
};

TEST_CASE("Delivery: only what may pass is sent again", "[otlp]") {
  const int status = GENERATE(301, 400, 401, 404, 408, 413, 415, 422, 500, 501);
  CAPTURE(status);
  Bench bench;
  bench.transport->answers = {{.status = status}};
  const Delivered delivered = bench.delivery().send("x", 1, 30.0);
  CHECK(delivered.outcome == Outcome::kRefused);
  // Of the bytes, not of a right, a path or the server.
  CHECK(delivered.final ==
        (status == 400 || status == 413 || status == 415 || status == 422));
  CHECK(bench.transport->bodies.size() == 1);
}

TEST_CASE("Delivery: the pauses grow to five seconds, give or take a fifth",
          "[otlp]") {
  const int status = GENERATE(0, 429, 502, 503, 504);
  CAPTURE(status);
  Bench bench;
  bench.transport->answers.assign(7, {.status = status});
  CHECK(bench.delivery().send("x", 1, 60.0).outcome == Outcome::kAccepted);
  CHECK(bench.transport->bodies.size() == 8);
  const std::vector<double> middle = {1.0, 1.5, 2.25, 3.375, 5.0, 5.0, 5.0};
  REQUIRE(bench.pauses.size() == middle.size());
  for (std::size_t i = 0; i < middle.size(); ++i)
    CHECK(bench.pauses[i] == Approx(middle[i]).epsilon(0.2));
}

TEST_CASE("Delivery: no attempt begins after its time", "[otlp]") {
  Bench bench;
  bench.transport->answers.assign(100, {.status = 503});
  const Delivered delivered = bench.delivery().send("x", 1, 10.0);
  CHECK(delivered.outcome == Outcome::kRefused);
  CHECK_FALSE(delivered.final);
  CHECK(std::accumulate(bench.pauses.begin(), bench.pauses.end(), 0.0) < 10.0);
}

TEST_CASE("Delivery: Retry-After is kept, over the end of a call too",
          "[otlp]") {
  Bench bench;
  Delivery delivery = bench.delivery();
  bench.transport->answers = {{.status = 429, .retry_after = 7.0}};
  CHECK(delivery.send("x", 1, 30.0).outcome == Outcome::kAccepted);
  CHECK(bench.pauses == std::vector<double>{7.0});

  bench.transport->answers = {{.status = 503, .retry_after = 20.0}};
  CHECK(delivery.send("x", 1, 10.0).outcome == Outcome::kRefused);
  const std::size_t sent = bench.transport->bodies.size();
  CHECK(delivery.send("y", 1, 10.0).outcome == Outcome::kRefused);
  CHECK(bench.transport->bodies.size() == sent);
  CHECK(delivery.send("y", 1, 30.0).outcome == Outcome::kAccepted);
}

TEST_CASE("Delivery: without a whole answer nobody knows", "[otlp]") {
  Bench bench;
  const Response response =
      GENERATE(Response{.may_have_arrived = true}, Response{.status = 502},
               Response{.status = 504});
  bench.transport->answers = {response, {.status = 503}};
  CHECK(bench.delivery().send("x", 1, 1.0).outcome == Outcome::kUnknown);

  const int status = GENERATE(400, 401, 404, 500);
  bench.transport->answers = {response, {.status = status}};
  const Delivered delivered = bench.delivery().send("x", 1, 30.0);
  CHECK(delivered.outcome == Outcome::kUnknown);
  CHECK(delivered.final == (status == 400));
}

TEST_CASE("Delivery: what is sent is protobuf, gzip when asked for", "[otlp]") {
  Bench bench;
  bench.settings.headers = {{"authorization", "secret"}};
  bench.settings.compression = Compression::kGzip;
  const std::string text(100'000, 'x');
  bench.delivery().send(text, 1, 1.0);
  const auto& headers = bench.transport->headers;
  const auto has = [&](const char* name, const char* value) {
    return std::ranges::count(
               headers, std::pair<std::string, std::string>(name, value)) == 1;
  };
  CHECK(has("authorization", "secret"));
  CHECK(has("content-type", "application/x-protobuf"));
  CHECK(has("content-encoding", "gzip"));
  const std::string& body = bench.transport->bodies.back();
  CHECK(body.size() < 1000);
  std::string back(text.size(), '\0');
  z_stream stream{};
  REQUIRE(inflateInit2(&stream, 15 + 16) == Z_OK);
  std::string input = body;
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(back.data());
  stream.avail_out = static_cast<uInt>(back.size());
  CHECK(inflate(&stream, Z_FINISH) == Z_STREAM_END);
  inflateEnd(&stream);
  CHECK(back == text);
}

TEST_CASE("read_partial_success: reads what is right, nothing from all else",
          "[otlp]") {
  const auto rejected = [](std::string body, std::string type = {}) {
    return read_partial_success(
               {.status = 200, .body = std::move(body), .content_type = type})
        .rejected;
  };
  const auto said = [](std::string text) {
    const std::string partial =
        '\x12' + std::string(1, static_cast<char>(text.size())) + text;
    return read_partial_success(
               {.status = 200,
                .body = '\x0a' +
                        std::string(1, static_cast<char>(partial.size())) +
                        partial})
        .message;
  };
  CHECK(said("too old") == "too old");
  CHECK(said("a\nWARNING \x1b[31mb\x7f") == "a WARNING  [31mb ");
  CHECK(said("\xff").size() == 3);  // U+FFFD
  // Longer than what is kept: 300 bytes, lengths as two bytes each.
  CHECK(read_partial_success(
            {.status = 200,
             .body = "\x0a\xaf\x02\x12\xac\x02" + std::string(300, 'x')})
            .message == std::string(256, 'x'));
  const std::string five("\x0a\x02\x08\x05", 4);
  CHECK(rejected(five) == 5);
  CHECK(rejected(five, "Application/X-Protobuf; v=1") == 5);
  CHECK(rejected(five, "text/html") == 0);
  CHECK(rejected({"\x0a\x07\x08\x05\x12\x03why", 9}) == 5);
  CHECK(rejected("") == 0);
  CHECK(rejected("<html>not found</html>") == 0);
  CHECK(rejected({"\x0a\x7f\x08", 3}) == 0);
  CHECK(rejected({"\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
                  13}) == 0);  // -1
}

TEST_CASE("Delivery: no more is rejected than was sent", "[otlp]") {
  Bench bench;
  bench.transport->answers = {
      {.status = 200, .body = {"\x0a\x04\x08\xff\xff\x7f", 6}}};
  CHECK(bench.delivery().send("x", 7, 1.0).partial.rejected == 7);
}

}  // namespace
}  // namespace vllm_metrics::otlp
