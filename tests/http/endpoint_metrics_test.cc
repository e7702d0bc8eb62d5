#include "src/http/endpoint_metrics.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/http/client.h"
#include "vllm_metrics/catalogue/catalogue.h"
#include "vllm_metrics/exposition/text_format.h"
#include "vllm_metrics/http/exposer.h"
#include "vllm_metrics/registry/registry.h"

using std::chrono::hours;
using std::chrono::milliseconds;
using vllm_metrics::Condition;
using vllm_metrics::Registry;
using vllm_metrics::TextFormat;
using vllm_metrics::http::ConnectionTable;
using vllm_metrics::http::EndpointMetrics;
using vllm_metrics::http::Exposer;
using vllm_metrics::http::ExposerOptions;

namespace {

// An endpoint, and its numbers as the page of its registry has them.
struct Watched {
  explicit Watched(ExposerOptions options = {}) {
    options.port = 0;
    options.process_metrics = false;
    exposer = *Exposer::start(registry, options);
  }
  int port() const { return exposer->port(); }

  // -1 when there is no such sample.
  double value(const std::string& family, const std::string& more = "") const {
    const std::string page(TextFormat().render(*registry));
    const std::string sample =
        "\nvllm_metrics_http_" + family +
        "{address=\"127.0.0.1:" + std::to_string(port()) + "\"" + more + "} ";
    const auto at = page.find(sample);
    return at == std::string::npos ? -1.0
                                   : std::stod(page.substr(at + sample.size()));
  }
  double answers(const std::string& code) const {
    return value("requests_total", ",code=\"" + code + "\"");
  }
  double ends(const std::string& reason) const {
    return value("closed_connections_total", ",reason=\"" + reason + "\"");
  }

  // The endpoint counts when it has seen the end: asks until it has.
  bool ended(const std::string& reason, double at_least) const {
    for (int i = 0; i < 100'000 && ends(reason) < at_least; ++i) {
      get(port(), "/health");
    }
    return ends(reason) >= at_least;
  }

  std::shared_ptr<Registry> registry = Registry::create();
  std::unique_ptr<Exposer> exposer;
};

std::size_t lines_with(const std::string& text, const std::string& part) {
  std::size_t lines = 0;
  for (auto at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1)) {
    ++lines;
  }
  return lines;
}

}  // namespace

TEST_CASE("Endpoint metrics: all of the catalogue are on the first page",
          "[http]") {
  const Watched watched;
  const auto page = get(watched.port(), "/metrics").body;
  std::size_t families = 0;
  for (const auto& spec : vllm_metrics::catalogue()) {
    if (spec.condition != Condition::kHttpEndpoint) continue;
    ++families;
    CHECK(lines_with(page, "# HELP " + std::string(spec.name)) == 1);
  }
  CHECK(families == 6);
  CHECK(lines_with(page, "# TYPE ") == families);
}

TEST_CASE("Endpoint metrics: answers are counted by code, a page not by itself",
          "[http]") {
  const Watched watched({.bearer_tokens = {{.text = "t"}}});
  const std::string login = "Authorization: Bearer t\r\n";
  Client client(watched.port());
  const auto first = client.get("/metrics", login);
  CHECK(first.body.find("code=\"200\"} 0.0\n") != std::string::npos);
  client.get("/metrics", login);
  client.get("/metrics");
  client.get("/secret", login);
  client.send("PUT /metrics HTTP/1.1\r\nHost: a\r\n" + login +
              "Content-Length: 0\r\n\r\n");
  CHECK(client.read_answer().status == 405);
  CHECK(watched.answers("200") == 2.0);
  CHECK(watched.answers("401") == 1.0);
  CHECK(watched.answers("404") == 1.0);
  CHECK(watched.answers("405") == 1.0);
  CHECK(watched.answers("503") == 0.0);
  CHECK(watched.answers("other") == 0.0);
  CHECK(watched.value("render_seconds_count") == 2.0);
  CHECK(watched.value("render_seconds_sum") > 0.0);
}

TEST_CASE("Endpoint metrics: bytes are those of whole bodies", "[http]") {
  const Watched watched;
  Client client(watched.port());
  const auto page = client.get("/metrics").body.size();
  client.send("HEAD /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
  CHECK(client.read_answer(/*has_body=*/false).status == 200);
  CHECK(client.get("/health").body == "ok\n");
  CHECK(client.get("/health").body == "ok\n");  // by now all have ended
  CHECK(watched.value("response_bytes_total") >=
        static_cast<double>(page) + 3.0);
  CHECK(watched.value("response_bytes_total") <=
        static_cast<double>(page) + 6.0);
}

TEST_CASE("Endpoint metrics: connections are counted, and why they ended",
          "[http]") {
  SECTION("by the client, after an answer") {
    const Watched watched;
    std::optional<Client> client(watched.port());
    client->get("/health");
    CHECK(watched.value("connections") == 1.0);
    client.reset();
    CHECK(Client(watched.port()).get("/health").status == 200);
    Client(watched.port()).get("/health");
    CHECK(watched.ends("client") >= 1.0);
    CHECK(watched.ends("no_request") == 0.0);
  }
  SECTION("without a request") {
    const Watched watched;
    { const Client scan(watched.port()); }
    Client no_http(watched.port());
    no_http.send("\x16\x03\x01 hello\r\n\r\n");
    no_http.read_to_end();
    CHECK(watched.ended("no_request", 2.0));
  }
  SECTION("by a deadline") {
    const Watched watched({.request_timeout = milliseconds(50),
                           .keep_alive_timeout = milliseconds(60)});
    Client silent(watched.port());
    CHECK(silent.read_to_end().empty());
    Client idle(watched.port());
    idle.get("/health");
    CHECK(idle.read_to_end().empty());
    CHECK(watched.ended("request_timeout", 1.0));
    CHECK(watched.ended("keep_alive_timeout", 1.0));
  }
  SECTION("for want of room") {
    const Watched watched({.max_connections = 1,
                           .request_timeout = hours(1),
                           .keep_alive_timeout = hours(1)});
    Client idle(watched.port());
    idle.get("/health");
    Client newcomer(watched.port());
    CHECK(idle.read_to_end().empty());
    CHECK(watched.ended("crowded_out", 1.0));
  }
}

TEST_CASE("Endpoint metrics: nothing a client sends becomes a series",
          "[http]") {
  const Watched watched;
  Client client(watched.port());
  const auto before = lines_with(client.get("/metrics").body, "\n");
  for (int i = 0; i < 200; ++i) {
    const auto text = std::to_string(i);
    client.get("/" + text + "?a=" + text, "User-Agent: " + text + "\r\n");
  }
  CHECK(lines_with(client.get("/metrics").body, "\n") == before);
  CHECK(watched.answers("404") == 200.0);
}

TEST_CASE("Endpoint metrics: two endpoints of one page are told apart",
          "[http]") {
  const auto registry = Registry::create();
  const ExposerOptions options{.port = 0, .process_metrics = false};
  auto first = *Exposer::start(registry, options);
  const auto second = *Exposer::start(registry, options);
  const auto series = [&] {
    return lines_with(get(second->port(), "/metrics").body,
                      "vllm_metrics_http_connections{");
  };
  CHECK(series() == 2);
  first->stop();
  CHECK(series() == 1);
}

TEST_CASE("Endpoint metrics: an option leaves them out", "[http]") {
  const Watched watched({.self_metrics = false});
  CHECK(get(watched.port(), "/metrics").body.empty());
}

TEST_CASE("Endpoint metrics: they leave the page when the endpoint stops",
          "[http]") {
  const Watched watched;
  watched.exposer->stop();
  CHECK(TextFormat().render(*watched.registry).empty());
}

TEST_CASE("Endpoint metrics: a code beyond the catalogue's is `other`",
          "[http]") {
  const auto registry = Registry::create();
  auto metrics = *EndpointMetrics::add_to(*registry, "unix:/a");
  metrics.count_answer(418);
  metrics.count_answer(0);
  metrics.count_answer(503);
  const std::string page(TextFormat().render(*registry));
  CHECK(page.find("{address=\"unix:/a\",code=\"other\"} 2.0\n") !=
        std::string::npos);
  CHECK(page.find("{address=\"unix:/a\",code=\"503\"} 1.0\n") !=
        std::string::npos);
  CHECK_FALSE(EndpointMetrics::add_to(*registry, "unix:/a").has_value());
  CHECK(TextFormat().render(*registry) == page);
}
