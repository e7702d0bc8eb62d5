#include "src/http/access.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "tests/http/client.h"
#include "vllm_metrics/http/exposer.h"
#include "vllm_metrics/registry/registry.h"

using vllm_metrics::Registry;
using vllm_metrics::http::Access;
using vllm_metrics::http::Exposer;
using vllm_metrics::http::ExposerOptions;
using vllm_metrics::http::PaddedText;

namespace {

// base64 of `aladdin:open sesame` and of `scraper:p:ss`.
constexpr auto kAladdin = "YWxhZGRpbjpvcGVuIHNlc2FtZQ==";
constexpr auto kScraper = "c2NyYXBlcjpwOnNz";

ExposerOptions both_ways() {
  ExposerOptions options{.port = 0, .process_metrics = false};
  options.basic_logins = {
      {.user = "aladdin", .password = {.text = "open sesame"}},
      {.user = "scraper", .password = {.text = "p:ss"}}};
  options.bearer_tokens = {{.text = "old-token"}, {.text = "new.token=="}};
  return options;
}

std::string message_of(const ExposerOptions& options) {
  const auto refused = Access::create(options);
  return refused.ok() ? "" : std::string(refused.status().message());
}

struct File {
  explicit File(const std::string& content) {
    const int fd = mkstemp(path.data());
    REQUIRE(fd >= 0);
    close(fd);
    std::ofstream(path) << content;
  }
  ~File() { std::filesystem::remove(path); }

  std::string path =
      (std::filesystem::temp_directory_path() / "vllm_metrics.XXXXXX").string();
};

// What the endpoint says to a request with this header, and maybe others.
Client::Answer ask(const Exposer& exposer, const std::string& headers,
                   const std::string& path = "/metrics") {
  return get(exposer.port(), path, headers);
}

}  // namespace

TEST_CASE("PaddedText: equal are texts of the same bytes and length",
          "[http]") {
  const auto equal = [](const std::string& a, const std::string& b) {
    return PaddedText(a).equals(PaddedText(b)) == 1;
  };
  CHECK(equal("", ""));
  CHECK(equal("secret", "secret"));
  CHECK_FALSE(equal("secret", "Secret"));
  CHECK_FALSE(equal("secret", "secre"));
  CHECK_FALSE(equal("secret", std::string("secret\0", 7)));
  CHECK_FALSE(equal(std::string(512, 'x'), std::string(513, 'x')));
  CHECK_FALSE(equal(std::string(512, 'x'), std::string(70'000, 'x')));
  CHECK_FALSE(equal("", std::string("\0", 1)));
}

TEST_CASE("Access: each login and token opens, whatever the scheme's case",
          "[http]") {
  const auto access = *Access::create(both_ways());
  for (const std::string scheme : {"Basic ", "basic ", "BASIC   "}) {
    CHECK(access.allows(scheme + kAladdin));
    CHECK(access.allows(scheme + kScraper + " "));
  }
  CHECK(access.allows("Bearer old-token"));
  CHECK(access.allows("bearer  new.token=="));
}

TEST_CASE("Access: whatever else a client sends does not open", "[http]") {
  const auto access = *Access::create(both_ways());
  const std::string header =
      GENERATE("", " ", "Basic", "Basic ", "Bearer ", "Basic:", "Basic ====",
               "Basic YWxhZGRpbjpvcGVuIHNlc2FtZQ",      // no padding
               "Basic YWxhZGRpbjpvcGVuIHNlc2FtZQ=",     // half of it
               "Basic YWxhZGRpbjpvcGVuIHNlc2FtZR==",    // stray bits
               "Basic YWxh ZGRpbjpvcGVuIHNlc2FtZQ==",   // a blank within
               "Basic YWxhZGRpbjpvcGVuIHNlc2FtZQ== x",  // more behind it
               "Basic aladdin:open sesame", "BasicYWxhZGRpbjpvcGVuIHNlc2FtZQ==",
               "Basic\tYWxhZGRpbjpvcGVuIHNlc2FtZQ==", "Basic old-token",
               "Bearer YWxhZGRpbjpvcGVuIHNlc2FtZQ==", "Bearer old-tokeN",
               "Bearer old-token,new.token==", "Digest old-token", "old-token",
               "\xff\xfe \xfd", "Basic \xff\xff\xff\xff");
  CAPTURE(header);
  CHECK_FALSE(access.allows(header));
  CHECK_FALSE(access.allows("Bearer " + std::string(100'000, 'x')));
  CHECK_FALSE(access.allows(std::string("Bearer old-token\0", 17)));
}

TEST_CASE("Access: without logins and tokens everybody may ask", "[http]") {
  const auto access = *Access::create({});
  CHECK(access.is_open());
  CHECK(access.allows(""));
  CHECK(access.allows("Basic nonsense"));
}

TEST_CASE("Access: a file's secret is its text without the line's end",
          "[http]") {
  const std::string end = GENERATE("", "\n", "\r\n");
  const File file("s3cret" + end);
  ExposerOptions options;
  options.bearer_tokens = {{.file = file.path}};
  const auto access = Access::create(options);
  REQUIRE(access.ok());
  CHECK(access->allows("Bearer s3cret"));
}

TEST_CASE("Access: what is no login is named without its secret", "[http]") {
  ExposerOptions options = both_ways();
  SECTION("a user with a colon") {
    options.basic_logins[1].user = "a:b";
    CHECK(message_of(options) ==
          "basic_logins[1].user = \"a:b\"; allowed: 1 to 128 bytes, no colon "
          "and no control characters");
  }
  SECTION("no password") {
    options.basic_logins[0].password = {};
    CHECK(message_of(options) ==
          "basic_logins[0].password has neither text nor file; one of them is "
          "needed");
  }
  SECTION("two passwords") {
    options.basic_logins[0].password.file = "/dev/null";
    CHECK(message_of(options) ==
          "basic_logins[0].password has both text and file; one of them is "
          "needed");
  }
  SECTION("a password with a line's end") {
    options.basic_logins[0].password.text = "hush\n";
    CHECK(message_of(options) ==
          "basic_logins[0].password has control characters; not allowed");
  }
  SECTION("a password that is too long") {
    options.basic_logins[0].password.text = std::string(241, 'x');
    CHECK(message_of(options) ==
          "basic_logins[0].password has 241 bytes; allowed: 1 to 240");
  }
  SECTION("a token with a blank") {
    options.bearer_tokens[1].text = "a b";
    CHECK(message_of(options) ==
          "bearer_tokens[1] has a character that is not allowed; allowed: A-Z "
          "a-z 0-9 - . _ ~ + / =");
  }
  SECTION("a token's file that is not there") {
    options.bearer_tokens[0] = {.file = "/nowhere/token"};
    CHECK(message_of(options) ==
          "bearer_tokens[0].file = \"/nowhere/token\": No such file or "
          "directory");
  }
  SECTION("a token's file that is a folder") {
    options.bearer_tokens[0] = {.file = "/"};
    CHECK(message_of(options) ==
          "bearer_tokens[0].file = \"/\": Is a directory");
  }
  SECTION("a token's file without an end") {
    options.bearer_tokens[0] = {.file = "/dev/zero"};
    CHECK(message_of(options) ==
          "bearer_tokens[0].file = \"/dev/zero\": larger than 1048576 bytes");
  }
  SECTION("an empty file, as of a rotation half done") {
    options.bearer_tokens[0] = {.file = "/dev/null"};
    CHECK(message_of(options) ==
          "bearer_tokens[0].file = \"/dev/null\": empty");
  }
  SECTION("a file with a line's end alone") {
    const File file("\n");
    options.bearer_tokens[0] = {.file = file.path};
    CHECK(message_of(options) ==
          "bearer_tokens[0] has 0 bytes; allowed: 1 to 512");
  }
}

TEST_CASE("Exposer: who has no login gets 401 and learns how, on every path",
          "[http]") {
  const auto exposer = *Exposer::start(Registry::create(), both_ways());
  const std::string path =
      GENERATE("/metrics", "/health", "/other", "/metrics?token=old-token");
  Client client(exposer->port());
  const auto refused = client.get(path);
  CHECK(refused.status == 401);
  CHECK(refused.body == "Unauthorized. A login is needed.\n");
  CHECK(refused.headers.at("content-type") == "text/plain; charset=utf-8");
  CHECK(refused.headers.at("www-authenticate") ==
        "Basic realm=\"metrics\", charset=\"UTF-8\"\n"
        "Bearer realm=\"metrics\"");
  // The connection stays, for the same request with a login.
  CHECK(client.get("/metrics", "Authorization: Bearer old-token\r\n").status ==
        200);
  CHECK(client.get("/metrics").status == 401);  // each request anew
}

TEST_CASE("Exposer: only the ways that are open are offered", "[http]") {
  auto options = both_ways();
  options.basic_logins.clear();
  const auto exposer = *Exposer::start(Registry::create(), options);
  CHECK(ask(*exposer, "").headers.at("www-authenticate") ==
        "Bearer realm=\"metrics\"");
  CHECK(ask(*exposer, std::string("Authorization: Basic ") + kAladdin + "\r\n")
            .status == 401);
}

TEST_CASE("Exposer: a login that a proxy could read otherwise is refused",
          "[http]") {
  const auto exposer = *Exposer::start(Registry::create(), both_ways());
  const std::string good = "Authorization: Bearer old-token\r\n";
  CHECK(ask(*exposer, good).status == 200);
  CHECK(ask(*exposer, "AUTHORIZATION: Bearer old-token\r\n").status == 200);
  CHECK(ask(*exposer, good + good).status == 401);
  CHECK(ask(*exposer, good + "authorization: Basic x\r\n").status == 401);
  CHECK(ask(*exposer, "Authorization:\r\n").status == 401);
  CHECK(ask(*exposer, "X-Authorization: Bearer old-token\r\n").status == 401);
}

TEST_CASE("Exposer: a huge Authorization is refused like any other", "[http]") {
  const auto exposer = *Exposer::start(Registry::create(), both_ways());
  const auto header = [](std::size_t size) {
    return "Authorization: Bearer " + std::string(size, 'x') + "\r\n";
  };
  CHECK(ask(*exposer, header(10'000)).status == 401);
  CHECK(ask(*exposer, header(100'000)).status == 431);
  CHECK(ask(*exposer, "Authorization: Bearer old-token\r\n").status == 200);
}

TEST_CASE("Exposer: the health path says ok and nothing else", "[http]") {
  auto options = both_ways();
  options.health_path = GENERATE("/health", "/-/healthy");
  options.public_health = true;
  const auto exposer = *Exposer::start(Registry::create(), options);
  Client client(exposer->port());
  const auto answer = client.get(options.health_path + "?verbose=1");
  CHECK(answer.status == 200);
  CHECK(answer.body == "ok\n");
  CHECK(answer.headers.at("content-type") == "text/plain; charset=utf-8");
  client.send("HEAD " + options.health_path + " HTTP/1.1\r\nHost: a\r\n\r\n");
  const auto head = client.read_answer(/*has_body=*/false);
  CHECK(head.status == 200);
  CHECK(head.headers.at("content-length") == "3");
  client.send("POST " + options.health_path +
              " HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
  const auto post = client.read_answer();
  CHECK(post.status == 405);
  CHECK(post.headers.at("allow") == "GET, HEAD");
  CHECK(client.get(options.health_path + "/").status == 401);
}

TEST_CASE("Exposer: without a health path it is 404 like any other", "[http]") {
  const auto exposer =
      *Exposer::start(Registry::create(),
                      {.port = 0, .process_metrics = false, .health_path = ""});
  CHECK(ask(*exposer, "", "/health").status == 404);
  CHECK(ask(*exposer, "", "/").status == 404);
}

TEST_CASE("Exposer: a health path that cannot be asked for is an error",
          "[http]") {
  const std::string path =
      GENERATE(std::string("health"), "/metrics", "/metrics/", "/a b", "/a?b",
               "/a#b", "/%41", "/\xc3\xa4", "/" + std::string(256, 'x'));
  const auto refused =
      Exposer::start(Registry::create(), {.port = 0, .health_path = path});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(refused.status().message()),
             Catch::StartsWith("health_path = \"/") ||
                 Catch::StartsWith("health_path = \"health\""));
}
