#include "src/otlp/answer_reader.h"

#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <vector>

namespace vllm_metrics::otlp {
namespace {

constexpr double kNow = 1'700'000'000.0;  // 2023-11-14 22:13:20 GMT

Response read(const std::vector<std::string>& lines,
              const std::string& body = {}) {
  AnswerReader reader(kNow);
  for (const std::string& line : lines) CHECK(reader.take_head(line + "\r\n"));
  CHECK(reader.take_body(body));
  return reader.take();
}

TEST_CASE("AnswerReader: an answer is its status, type and body", "[otlp]") {
  const Response response = read(
      {"HTTP/1.1 200 OK", "Content-TYPE:  application/x-protobuf ", "a: b", ""},
      "xy");
  CHECK(response.status == 200);
  CHECK(response.content_type == "application/x-protobuf");
  CHECK(response.body == "xy");
  CHECK_FALSE(response.retry_after.has_value());
}

TEST_CASE("AnswerReader: a head that is not whole, or none, is no answer",
          "[otlp]") {
  CHECK(read({"HTTP/1.1 200 OK"}).status == 0);
  CHECK(read({"HTTP/1.1 200 OK", "a: b"}).status == 0);
  CHECK(read({}).status == 0);
  CHECK(read({""}).status == 0);
  CHECK(read({"SSH-2.0-x", ""}).status == 0);
  for (const char* status : {"", "20", "099", "600", "2x0", "-20", "20 "})
    CHECK(read({std::string("HTTP/1.1 ") + status, ""}).status == 0);
}

TEST_CASE("AnswerReader: what comes before the last answer is not it",
          "[otlp]") {
  CHECK(read({"HTTP/1.1 100 Continue", ""}).status == 0);
  const Response response =
      read({"HTTP/1.1 103 Early Hints", "retry-after: 7", "",
            "HTTP/1.1 503 Later", "", "retry-after: 9"});  // a trailer
  CHECK(response.status == 503);
  CHECK_FALSE(response.retry_after.has_value());
}

TEST_CASE("AnswerReader: Retry-After is seconds or a date, ahead of us",
          "[otlp]") {
  const auto [value, seconds] =
      GENERATE(table<std::string, std::optional<double>>(
          {{"7", 7.0},
           {"0", std::nullopt},
           {"-7", std::nullopt},
           {"1e3", std::nullopt},
           {"soon", std::nullopt},
           {"", std::nullopt},
           {"99999999999999999999999", 1e23},
           {"Tue, 14 Nov 2023 22:13:50 GMT", 30.0},
           {"Tue, 14 Nov 2023 22:13:20 GMT", std::nullopt},
           {"Mon, 13 Nov 2023 22:13:20 GMT", std::nullopt},
           {"Tue, 99 Nov 2023 99:99:99 GMT", std::nullopt}}));
  CAPTURE(value);
  CHECK(read({"HTTP/1.1 429 Slow", "Retry-After: " + value, ""}).retry_after ==
        seconds);
}

TEST_CASE("AnswerReader: head and body end at 64 KiB", "[otlp]") {
  AnswerReader body(kNow);
  CHECK(body.take_head("HTTP/1.1 200 OK\r\n"));
  CHECK(body.take_head("\r\n"));
  CHECK(body.take_body(std::string(65'536, 'x')));
  CHECK(body.take_body(""));
  CHECK_FALSE(body.take_body("x"));
  CHECK(body.take().body.size() == 65'536);

  AnswerReader head(kNow);
  CHECK(head.take_head("HTTP/1.1 200 OK\r\n"));
  int lines = 0;
  while (head.take_head("a: " + std::string(995, 'x') + "\r\n")) ++lines;
  CHECK(lines == 65);
  CHECK(head.take().status == 0);
}

}  // namespace
}  // namespace vllm_metrics::otlp
