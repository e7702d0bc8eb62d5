#include "vllm_metrics/http/exposer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/http/client.h"
#include "tests/http/served.h"
#include "vllm_metrics/exposition/text_format.h"
#include "vllm_metrics/registry/registry.h"

using Catch::Matchers::Contains;
using vllm_metrics::Registry;
using vllm_metrics::SnapshotSource;
using vllm_metrics::http::Exposer;
using vllm_metrics::http::ExposerOptions;

namespace {

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// A plain listening socket, as another program has one.
struct TakenPort {
  TakenPort() : fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof name;
    auto* const address = reinterpret_cast<sockaddr*>(&name);
    REQUIRE(bind(fd, address, size) == 0);
    REQUIRE(listen(fd, 1) == 0);
    REQUIRE(getsockname(fd, address, &size) == 0);
    port = ntohs(name.sin_port);
  }
  ~TakenPort() { close(fd); }

  int fd;
  int port = 0;
};

}  // namespace

TEST_CASE("Exposer: GET /metrics answers the page with its type and length",
          "[http]") {
  const Served served;
  const auto path = GENERATE("/metrics", "/metrics/", "/metrics?x=1",
                             "/metrics/?name[]=tokens", "/%6detrics");
  CAPTURE(path);
  const auto answer = get(served.port(), path);
  CHECK(answer.status == 200);
  CHECK(answer.body == kPage);
  CHECK(answer.headers.at("content-type") == kType);
  CHECK(answer.headers.at("content-length") ==
        std::to_string(std::string(kPage).size()));
}

TEST_CASE("Exposer: each answer is the registry of that moment", "[http]") {
  const Served served;
  Client client(served.port());
  CHECK(client.get("/metrics").body == kPage);
  served.tokens->inc(4);
  CHECK_THAT(client.get("/metrics").body, Contains("tokens_total 7.0\n"));
  const auto queue =
      *served.registry->add_gauge({.name = "queue", .help = "Q."});
  CHECK_THAT(client.get("/metrics").body, Contains("queue 0.0\n"));
}

TEST_CASE("Exposer: HEAD answers the headers of GET and no body", "[http]") {
  const Served served;
  Client client(served.port());
  client.send("HEAD /metrics HTTP/1.1\r\nHost: test\r\n\r\n");
  const auto head = client.read_answer(/*has_body=*/false);
  CHECK(head.status == 200);
  CHECK(head.headers.at("content-type") == kType);
  CHECK(head.headers.at("content-length") ==
        std::to_string(std::string(kPage).size()));
  // Had there been a body, it would stand before the next answer.
  CHECK(client.get("/metrics").body == kPage);
}

TEST_CASE("Exposer: an unknown path is 404 with a type and no metric",
          "[http]") {
  const Served served;
  const auto path =
      GENERATE("/", "/metric", "/metricsx", "/metrics/x", "//metrics",
               "/METRICS", "/?/metrics", "/..%2fmetrics", "*");
  CAPTURE(path);
  const auto answer = get(served.port(), path);
  CHECK(answer.status == 404);
  CHECK(answer.headers.at("content-type") == "text/plain; charset=utf-8");
  CHECK(answer.body == "Not found. The metrics are at /metrics.\n");
}

TEST_CASE("Exposer: another method is 405 and says which are allowed",
          "[http]") {
  const Served served;
  const std::string method =
      GENERATE("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "get", "BREW");
  const std::string body = GENERATE("", "tokens_total 9\n");
  CAPTURE(method, body);
  Client client(served.port());
  client.send(method + " /metrics HTTP/1.1\r\nHost: test\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n\r\n" + body);
  const auto answer = client.read_answer();
  CHECK(answer.status == 405);
  CHECK(answer.headers.at("allow") == "GET, HEAD");
  CHECK(answer.headers.at("content-type") == "text/plain; charset=utf-8");
  CHECK(answer.body == "Method not allowed. Allowed: GET, HEAD.\n");
  // The body was read as one, not as the next request.
  CHECK(client.get("/metrics").body == kPage);
}

TEST_CASE("Exposer: the body of a GET is not the next request", "[http]") {
  const Served served;
  Client client(served.port());
  const std::string smuggled = "GET /secret HTTP/1.1\r\nHost: test\r\n\r\n";
  const std::string head =
      GENERATE_COPY("Content-Length: " + std::to_string(smuggled.size()) +
                        "\r\n\r\n" + smuggled,
                    std::string("Transfer-Encoding: chunked\r\n\r\n24\r\n") +
                        smuggled + "\r\n0\r\n\r\n");
  client.send("GET /metrics HTTP/1.1\r\nHost: test\r\n" + head);
  CHECK(client.read_answer().status == 200);
  CHECK(client.get("/metrics").status == 200);
}

TEST_CASE("Exposer: a connection carries many requests, also sent ahead",
          "[http]") {
  const Served served;
  Client client(served.port());
  std::string ahead;
  for (int i = 0; i < 20; ++i) {
    ahead += i % 2 == 0 ? "GET /metrics HTTP/1.1\r\nHost: test\r\n\r\n"
                        : "GET /other HTTP/1.1\r\nHost: test\r\n\r\n";
  }
  client.send(ahead);
  for (int i = 0; i < 20; ++i) {
    CHECK(client.read_answer().status == (i % 2 == 0 ? 200 : 404));
  }
  CHECK(client.get("/metrics", "Connection: close\r\n").status == 200);
  CHECK(client.read_to_end().empty());
}

TEST_CASE("Exposer: an HTTP/1.0 client gets its page and the end", "[http]") {
  const Served served;
  Client client(served.port());
  client.send("GET /metrics HTTP/1.0\r\n\r\n");
  const auto answer = client.read_answer();
  CHECK(answer.status == 200);
  CHECK(answer.body == kPage);
  CHECK(client.read_to_end().empty());
}

TEST_CASE("Exposer: a port that is taken is an error, and recording goes on",
          "[http]") {
  const auto registry = Registry::create();
  auto tokens = *registry->add_counter({.name = "tokens", .help = "Tokens."});
  ExposerOptions options{.process_metrics = false, .self_metrics = false};
  {
    const TakenPort taken;
    options.port = taken.port;
    const auto refused = Exposer::start(registry, options);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.status().message() ==
          "127.0.0.1:" + std::to_string(taken.port) +
              ": Address already in use");
  }
  tokens->inc(3);
  CHECK(vllm_metrics::TextFormat().render(*registry) == kPage);
  auto exposer = *Exposer::start(registry, options);  // free again
  CHECK(exposer->port() == options.port);
  CHECK(get(exposer->port(), "/metrics").body == kPage);
}

TEST_CASE("Exposer: two endpoints never share a port, and end in any order",
          "[http]") {
  Served served;
  const auto same_port = ExposerOptions{.port = served.port()};
  const auto refused = Exposer::start(served.registry, same_port);
  REQUIRE_FALSE(refused.ok());
  CHECK_THAT(std::string(refused.status().message()),
             Contains("127.0.0.1:" + std::to_string(served.port())));
  const auto everywhere = ExposerOptions{.address = "0.0.0.0",
                                         .allow_all_interfaces = true,
                                         .port = served.port()};
  CHECK_FALSE(Exposer::start(served.registry, everywhere).ok());

  auto other = *Exposer::start(
      served.registry,
      {.port = 0, .process_metrics = false, .self_metrics = false});
  CHECK(get(other->port(), "/metrics").body == kPage);
  if (GENERATE(true, false)) {
    served.exposer.reset();
    CHECK(get(other->port(), "/metrics").body == kPage);
  } else {
    other.reset();
    CHECK(get(served.port(), "/metrics").body == kPage);
  }
}

TEST_CASE("Exposer: an option out of range is named with what is allowed",
          "[http]") {
  using std::chrono::milliseconds;
  const auto registry = Registry::create();
  const auto [options, message] = GENERATE(table<ExposerOptions, std::string>({
      {{.port = -1}, "port = -1; allowed: 0 to 65535"},
      {{.port = 65536}, "port = 65536; allowed: 0 to 65535"},
      {{.unix_permissions = 01000},
       "unix_permissions = 01000; allowed: 0 to 0777, octal"},
      {{.unix_permissions = -1},
       "unix_permissions = -1; allowed: 0 to 0777, octal"},
      {{.max_connections = 0}, "max_connections = 0; allowed: 1 to 1024"},
      {{.request_timeout = milliseconds(0)},
       "request_timeout = 0 ms; allowed: 1 to 3600000 ms"},
      {{.keep_alive_timeout = milliseconds(-1)},
       "keep_alive_timeout = -1 ms; allowed: 1 to 86400000 ms"},
      {{.connection_memory_bytes = 100},
       "connection_memory_bytes = 100; allowed: 4096 to 1048576"},
  }));
  const auto refused = Exposer::start(registry, options);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(refused.status().message() == message);
}

TEST_CASE("Exposer: an address that is none of this machine is an error",
          "[http]") {
  const auto registry = Registry::create();
  const std::string address =
      GENERATE("", "localhost", "127.0.0.1:80", "[::1]", "256.0.0.1",
               "192.0.2.1", std::string("127.0.0.1\0x", 11));
  const auto refused =
      Exposer::start(registry, {.address = address, .port = 0});
  REQUIRE_FALSE(refused.ok());
  CHECK_THAT(std::string(refused.status().message()), Contains(address));
}

TEST_CASE("Exposer: every interface is an explicit choice", "[http]") {
  const std::string address =
      GENERATE("0.0.0.0", "0", "0x0", "::", "0:0::0", "::ffff:0.0.0.0");
  const auto refused =
      Exposer::start(Registry::create(), {.address = address, .port = 0});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(refused.status().message() ==
        "address = \"" + address +
            "\" is every interface of this machine; allowed only with "
            "allow_all_interfaces = true");
}

TEST_CASE("Exposer: a null registry is an error", "[http]") {
  const auto refused = Exposer::start(nullptr, {.port = 0});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.status().message() == "registry is null");
}

TEST_CASE("Exposer: url() has the real port, and brackets around IPv6",
          "[http]") {
  const auto registry = Registry::create();
  const auto ipv4 = *Exposer::start(registry, {.port = 0});
  CHECK(ipv4->port() > 0);
  CHECK(ipv4->url() ==
        "http://127.0.0.1:" + std::to_string(ipv4->port()) + "/metrics");
  const auto ipv6 = Exposer::start(registry, {.address = "::1", .port = 0});
  if (!ipv6.ok()) {
    WARN("no IPv6 here: " << ipv6.status().message());
    return;
  }
  CHECK((*ipv6)->url() ==
        "http://[::1]:" + std::to_string((*ipv6)->port()) + "/metrics");
}

TEST_CASE("Exposer: \"::\" serves IPv4 clients too", "[http]") {
  const auto exposer = Exposer::start(
      Registry::create(),
      {.address = "::", .allow_all_interfaces = true, .port = 0});
  if (!exposer.ok()) {
    WARN("no IPv6 here: " << exposer.status().message());
    return;
  }
  CHECK(get((*exposer)->port(), "/metrics").status == 200);
}

TEST_CASE("Exposer: stop() closes the port and the connections, twice too",
          "[http]") {
  Served served;
  Client client(served.port());
  CHECK(client.get("/metrics").status == 200);
  served.exposer->stop();
  CHECK(client.read_to_end().empty());
  CHECK_FALSE(Client(served.port()).connected());
  served.exposer->stop();
  served.tokens->inc();  // the engine does not notice
}

TEST_CASE("Exposer: a registry without a metric is an empty page", "[http]") {
  const auto exposer = *Exposer::start(
      Registry::create(),
      {.port = 0, .process_metrics = false, .self_metrics = false});
  const auto answer = get(exposer->port(), "/metrics");
  CHECK(answer.status == 200);
  CHECK(answer.headers.at("content-type") == kType);
  CHECK(answer.body.empty());
}

TEST_CASE("Exposer: a page that cannot be made is 503, the next one is not",
          "[http]") {
  struct Nothing : SnapshotSource {
    void read(std::span<std::uint64_t>) const noexcept override {}
  };
  const Served served;
  Client client(served.port());
  {
    // More words than any vector can have.
    const auto too_large = *served.registry->add(
        {}, std::make_shared<Nothing>(), std::size_t{1} << 60);
    const auto answer = client.get("/metrics");
    CHECK(answer.status == 503);
    CHECK(answer.headers.at("content-type") == "text/plain; charset=utf-8");
    CHECK(answer.body ==
          "type: out_of_memory\nThe page could not be made. Try again.\n");
  }
  CHECK(client.get("/metrics").body == kPage);
}

TEST_CASE("Exposer: what a series' source throws ends that answer only",
          "[http]") {
  struct Thrower : vllm_metrics::ChangingSource {
    std::shared_ptr<const State> current() const override {
      if (kind == 1) throw std::bad_alloc();
      if (kind == 2) throw std::runtime_error("not my day");
      if (kind == 3) throw 42;  // not even an exception
      return std::make_shared<State>();
    }
    int kind = 0;
  };
  const Served served;
  Client client(served.port());
  const int kind = GENERATE(1, 2, 3);
  CAPTURE(kind);
  {
    const auto thrower = std::make_shared<Thrower>();
    const auto added =
        *served.registry->add({.name = "adapters_info",
                               .help = "Adapters.",
                               .kind = vllm_metrics::MetricKind::kGauge,
                               .info = true},
                              thrower);
    thrower->kind = kind;
    const auto answer = client.get("/metrics");
    CHECK(answer.status == 503);
    CHECK(answer.body ==
          (kind == 1 ? "type: out_of_memory\n" : "type: render_failed\n") +
              std::string("The page could not be made. Try again.\n"));
  }
  CHECK(client.get("/metrics").body == kPage);
}

TEST_CASE("Exposer: process metrics are on every endpoint's page once",
          "[http]") {
  const auto registry = Registry::create();
  auto first = *Exposer::start(registry, {.port = 0});
  auto second = *Exposer::start(registry, {.port = 0});
  const auto times_on = [](const std::unique_ptr<Exposer>& exposer) {
    return occurrences(get(exposer->port(), "/metrics").body,
                       "\nprocess_open_fds ");
  };
  CHECK(times_on(first) == 1);
  CHECK(times_on(second) == 1);
  first.reset();  // was the one that had registered them
  CHECK(times_on(second) == 1);
  second.reset();
  CHECK(vllm_metrics::TextFormat().render(*registry).empty());
}
