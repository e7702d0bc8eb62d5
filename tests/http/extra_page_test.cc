#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>

#include "tests/http/client.h"
#include "tests/http/served.h"
#include "vllm_metrics/http/exposer.h"

using vllm_metrics::http::Exposer;
using vllm_metrics::http::ExposerOptions;
using vllm_metrics::http::ExtraPage;
using vllm_metrics::http::PageAnswer;
using vllm_metrics::http::PageRequest;

namespace {

PageAnswer echo(const PageRequest& asked) {
  std::string body(asked.method);
  for (const auto part :
       {asked.host, asked.origin, asked.content_type, asked.body}) {
    body += '|';
    body += part;
  }
  return {.status = 201, .content_type = "text/x-echo", .body = body};
}

PageAnswer fail(const PageRequest& /*asked*/) {
  throw std::runtime_error("not today");
}

ExposerOptions with_pages() {
  ExposerOptions options;
  options.extra_pages = {{.path = "/", .answer = echo},
                         {.path = "/echo",
                          .takes_post = true,
                          .max_body_bytes = 16,
                          .answer = echo},
                         {.path = "/fail", .answer = fail}};
  return options;
}

Client::Answer post(const Served& served, const std::string& path,
                    const std::string& headers, const std::string& body) {
  Client client(served.port());
  client.send("POST " + path + " HTTP/1.1\r\nHost: test\r\n" + headers +
              "\r\n" + body);
  return client.read_answer();
}

std::string length(std::size_t size) {
  return "Content-Length: " + std::to_string(size) + "\r\n";
}

}  // namespace

TEST_CASE("Exposer: an extra page answers its path beside the metrics",
          "[http]") {
  const Served served(with_pages());
  const auto answer = get(served.port(), "/?a=b", "Origin: http://o\r\n");
  CHECK(answer.status == 201);
  CHECK(answer.headers.at("content-type") == "text/x-echo");
  CHECK(answer.headers.at("x-content-type-options") == "nosniff");
  CHECK(answer.body == "GET|test|http://o||");
  CHECK(get(served.port(), "/metrics").body == kPage);
  CHECK(get(served.port(), "/health").body == "ok\n");
  CHECK(get(served.port(), "/echo/").status == 404);
}

TEST_CASE("Exposer: an extra page takes a body only where it says so",
          "[http]") {
  const Served served(with_pages());
  const auto taken =
      post(served, "/echo", "Content-Type: text/x\r\n" + length(4), "ab\r\n");
  CHECK(taken.status == 201);
  CHECK(taken.body == "POST|test||text/x|ab\r\n");

  const auto refused = post(served, "/", length(4), "abcd");
  CHECK(refused.status == 405);
  CHECK(refused.headers.at("allow") == "GET, HEAD");
  CHECK(post(served, "/metrics", length(4), "abcd").status == 405);
}

TEST_CASE("Exposer: a body above the limit of its page is 413", "[http]") {
  const Served served(with_pages());
  CHECK(post(served, "/echo", length(16), std::string(16, 'x')).status == 201);
  CHECK(post(served, "/echo", length(17), std::string(17, 'x')).status == 413);
  const std::string large(1 << 20, 'x');
  CHECK(post(served, "/echo", length(large.size()), large).status == 413);
  CHECK(post(served, "/echo", "Transfer-Encoding: chunked\r\n",
             "a\r\n0123456789\r\na\r\n0123456789\r\n1\r\nx\r\n0\r\n\r\n")
            .status == 413);
}

TEST_CASE("Exposer: what a page throws is the client's 503", "[http]") {
  const Served served(with_pages());
  const auto answer = get(served.port(), "/fail");
  CHECK(answer.status == 503);
  CHECK(answer.body ==
        "type: render_failed\nThe page could not be made. Try again.\n");
  CHECK(get(served.port(), "/").status == 201);
}

TEST_CASE("Exposer: extra pages are under the logins", "[http]") {
  ExposerOptions options = with_pages();
  options.bearer_tokens = {{.text = "secret"}};
  const Served served(options);
  CHECK(get(served.port(), "/").status == 401);
  CHECK(get(served.port(), "/", "Authorization: Bearer secret\r\n").status ==
        201);
}

TEST_CASE("Exposer: start() refuses a page that could not be reached",
          "[http]") {
  const auto start = [](ExtraPage page) {
    ExposerOptions options;
    options.port = 0;
    options.extra_pages = {{.path = "/taken", .answer = echo}, std::move(page)};
    return Exposer::start(vllm_metrics::Registry::create(), options);
  };
  for (const char* path : {"", "x", "/metrics", "/metrics/", "/health",
                           "/taken", "/a b", "/a?b"}) {
    CAPTURE(path);
    const auto refused = start({.path = path, .answer = echo});
    CHECK(refused.status().code() == absl::StatusCode::kInvalidArgument);
    CHECK(std::string(refused.status().message())
              .starts_with("extra_pages: path = \"" + std::string(path)));
  }
  CHECK(std::string(start({.path = "/x"}).status().message()) ==
        "extra_pages: /x has no answer");
  CHECK(
      std::string(
          start({.path = "/x", .max_body_bytes = (1 << 20) + 1, .answer = echo})
              .status()
              .message()) ==
      "extra_pages: max_body_bytes = 1048577; allowed: 0 to 1048576");
}
