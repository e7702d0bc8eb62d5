#include <zlib.h>

#include <catch2/catch.hpp>
#include <string>

#include "tests/http/client.h"
#include "tests/http/served.h"
#include "vllm_metrics/http/exposer.h"

using vllm_metrics::http::ExposerOptions;

namespace {

std::string inflated(const std::string& compressed) {
  z_stream stream{};
  REQUIRE(inflateInit2(&stream, 15 + 16) == Z_OK);
  std::string text(1 << 20, '\0');
  std::string input = compressed;
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  CHECK(inflate(&stream, Z_FINISH) == Z_STREAM_END);
  CHECK(stream.avail_in == 0);
  text.resize(text.size() - stream.avail_out);
  inflateEnd(&stream);
  return text;
}

}  // namespace

// Prometheus 3 refuses a target whose type it does not know.
TEST_CASE("Exposer: without a usable Accept it is text 0.0.4, fully typed",
          "[http]") {
  const Served served;
  const auto accept =
      GENERATE(std::string(), "Accept: */*\r\n", "Accept: application/json\r\n",
               "Accept: application/openmetrics-text;version=9.9.9\r\n",
               "Accept: " + std::string(8192, ',') + "\r\n");
  CAPTURE(accept);
  const auto answer = get(served.port(), "/metrics", accept);
  CHECK(answer.status == 200);
  CHECK(answer.headers.at("content-type") == kType);
  CHECK(answer.body == kPage);
}

TEST_CASE("Exposer: text 1.0.0 is for who names it, with the same body",
          "[http]") {
  const Served served;
  const auto answer =
      get(served.port(), "/metrics",
          "Accept: text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
          "text/plain;version=0.0.4;q=0.3,*/*;q=0.1\r\n");
  CHECK(answer.status == 200);
  CHECK(answer.headers.at("content-type") ==
        "text/plain; version=1.0.0; charset=utf-8");
  CHECK(answer.headers.at("vary") == "Accept, Accept-Encoding");
  CHECK(answer.body == kPage);
}

// A header that says gzip over a body that is none breaks every scraper.
TEST_CASE("Exposer: the body is gzip when, and only when, the client takes it",
          "[http]") {
  const Served served;
  for (int i = 0; i < 3; ++i) {
    const auto answer =
        get(served.port(), "/metrics", "Accept-Encoding: deflate, gzip\r\n");
    CHECK(answer.status == 200);
    CHECK(answer.headers.at("content-encoding") == "gzip");
    CHECK(answer.headers.at("content-type") == kType);
    CHECK(answer.headers.at("content-length") ==
          std::to_string(answer.body.size()));
    CHECK(answer.body.substr(0, 2) == "\x1f\x8b");
    CHECK(inflated(answer.body) == kPage);
  }
  for (const char* header :
       {"", "Accept-Encoding: gzip;q=0, identity\r\n",
        "Accept-Encoding: identity\r\n", "Accept-Encoding: br\r\n"}) {
    const auto answer = get(served.port(), "/metrics", header);
    CHECK(answer.headers.count("content-encoding") == 0);
    CHECK(answer.body == kPage);
  }
}

TEST_CASE("Exposer: gzip can be turned off", "[http]") {
  ExposerOptions options;
  options.gzip = false;
  const Served served(options);
  const auto answer =
      get(served.port(), "/metrics", "Accept-Encoding: gzip\r\n");
  CHECK(answer.headers.count("content-encoding") == 0);
  CHECK(answer.body == kPage);
}

// The type without the end mark makes Prometheus throw the scrape away.
TEST_CASE("Exposer: who asks for OpenMetrics gets its type and its body",
          "[http]") {
  const Served served;
  const auto answer =
      get(served.port(), "/metrics",
          "Accept: application/openmetrics-text;version=1.0.0\r\n");
  CHECK(answer.status == 200);
  CHECK(answer.headers.at("content-type") ==
        "application/openmetrics-text; version=1.0.0; charset=utf-8");
  CHECK(answer.headers.at("vary") == "Accept, Accept-Encoding");
  CHECK(answer.body ==
        "# HELP tokens Tokens.\n"
        "# TYPE tokens counter\n"
        "tokens_total 3.0\n"
        "# EOF\n");
  CHECK(get(served.port(), "/metrics", "Accept: text/plain\r\n").body == kPage);
}
