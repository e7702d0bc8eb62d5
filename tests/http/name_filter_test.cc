#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "tests/http/client.h"
#include "tests/http/served.h"
#include "vllm_metrics/http/exposer.h"
#include "vllm_metrics/primitives/gauge.h"
#include "vllm_metrics/primitives/histogram.h"
#include "vllm_metrics/registry/registry.h"

using vllm_metrics::http::ExposerOptions;

namespace {

constexpr auto kWaiting =
    "# HELP vllm:num_requests_waiting Waiting.\n"
    "# TYPE vllm:num_requests_waiting gauge\n"
    "vllm:num_requests_waiting 2.0\n";
constexpr auto kHeader =
    "# HELP wait_seconds Wait.\n"
    "# TYPE wait_seconds histogram\n";
constexpr auto kBuckets =
    "wait_seconds_bucket{le=\"1.0\"} 1.0\n"
    "wait_seconds_bucket{le=\"+Inf\"} 2.0\n";
constexpr auto kCount = "wait_seconds_count 2.0\n";
constexpr auto kSum = "wait_seconds_sum 3.5\n";

// Beside the counter of Served a gauge and a histogram.
struct ServedThree : Served {
  explicit ServedThree(ExposerOptions options = {}) : Served(options) {
    waiting->set(2);
    wait->observe(0.5);
    wait->observe(3);
  }
  std::string page(const std::string& query, const std::string& header = "") {
    const auto answer = get(port(), "/metrics?" + query, header);
    CHECK(answer.status == 200);
    return answer.body;
  }

  vllm_metrics::Handle<vllm_metrics::Gauge> waiting = *registry->add_gauge(
      {.name = "vllm:num_requests_waiting", .help = "Waiting."});
  vllm_metrics::Handle<vllm_metrics::Histogram> wait = *registry->add_histogram(
      {.name = "wait_seconds", .help = "Wait."}, std::array{1.0});
};

}  // namespace

TEST_CASE("Exposer: name[] selects samples by their names, as client_python",
          "[http]") {
  ServedThree served;
  CHECK(served.page("name[]=tokens_total") == kPage);
  CHECK(served.page("name[]=wait_seconds_count") ==
        std::string(kHeader) + kCount);
  CHECK(served.page("name[]=wait_seconds_sum&name[]=wait_seconds_bucket") ==
        std::string(kHeader) + kBuckets + kSum);
}

TEST_CASE("Exposer: name[] of a family selects all of its samples", "[http]") {
  ServedThree served;
  CHECK(served.page("name[]=tokens") == kPage);
  CHECK(served.page("name[]=wait_seconds") ==
        std::string(kHeader) + kBuckets + kCount + kSum);
}

TEST_CASE("Exposer: several name[] are one page, in the page's order",
          "[http]") {
  ServedThree served;
  CHECK(served.page("name[]=vllm:num_requests_waiting&x=1&name[]=tokens") ==
        std::string(kPage) + kWaiting);
  CHECK(served.page("name[]=tokens&name[]=tokens") == kPage);
}

TEST_CASE("Exposer: name[] comes in percent-encoding too", "[http]") {
  ServedThree served;
  CHECK(served.page("name%5B%5D=vllm%3Anum_requests_waiting") == kWaiting);
  CHECK(served.page("name%5b%5d=%74okens") == kPage);
}

// As in a URL library: what is no encoding stands for itself.
TEST_CASE("Exposer: a malformed percent in name[] names nothing", "[http]") {
  ServedThree served;
  for (const char* query :
       {"name[]=tokens%", "name[]=tokens%7", "name[]=tokens%zz",
        "name[]=tokens%00", "name[]=%00", "name[]=tok+ens"}) {
    CAPTURE(query);
    CHECK(served.page(query).empty());
    CHECK(served.page(std::string(query) + "&name[]=tokens") == kPage);
  }
}

TEST_CASE("Exposer: a name[] that nothing has is an empty page", "[http]") {
  ServedThree served;
  CHECK(served.page("name[]=absent").empty());
  CHECK(served.page("name[]=Tokens").empty());
  CHECK(served.page("name[]=absent",
                    "Accept: application/openmetrics-text\r\n") == "# EOF\n");
}

TEST_CASE("Exposer: without a name the page is whole", "[http]") {
  ServedThree served;
  const std::string whole = get(served.port(), "/metrics").body;
  CHECK(whole.size() > std::string(kPage).size());
  for (const char* query : {"name[]=", "name[]", "name=tokens", "name[]=&a=b",
                            "names[]=tokens", "NAME[]=tokens"}) {
    CAPTURE(query);
    CHECK(served.page(query) == whole);
  }
}

TEST_CASE("Exposer: name[] selects in OpenMetrics as well", "[http]") {
  ServedThree served;
  const std::string header = "Accept: application/openmetrics-text\r\n";
  CHECK(served.page("name[]=tokens", header) ==
        "# HELP tokens Tokens.\n"
        "# TYPE tokens counter\n"
        "tokens_total 3.0\n"
        "# EOF\n");
  CHECK(served.page("name[]=wait_seconds_count", header) ==
        std::string(kHeader) + kCount + "# EOF\n");
  CHECK(served.page("name[]=tokens") == kPage);
}

TEST_CASE("Exposer: name[] selects times of creation", "[http]") {
  ExposerOptions options;
  options.text_format.created_series = true;
  ServedThree served(options);
  const std::string created = served.page("name[]=tokens_created");
  CHECK(
      created.starts_with("# HELP tokens_created Tokens.\n"
                          "# TYPE tokens_created gauge\n"
                          "tokens_created 1."));
  CHECK(served.page("name[]=tokens_total") == kPage);
  CHECK(served.page("name[]=tokens") == kPage + created);
}

TEST_CASE("Exposer: more or longer name[] than allowed are 400", "[http]") {
  ServedThree served;
  const std::string longest = "name[]=" + std::string(256, 'a');
  CHECK(served.page(longest).empty());
  const auto too_long = get(served.port(), "/metrics?" + longest + "a");
  CHECK(too_long.status == 400);
  CHECK(too_long.headers.at("content-type") == "text/plain; charset=utf-8");
  CHECK(too_long.body ==
        "Bad request. Allowed: 256 name[] of up to 256 bytes.\n");

  std::string most = "name[]=tokens";
  for (int i = 1; i < 256; ++i) most += "&name[]=" + std::to_string(i);
  CHECK(served.page(most) == kPage);
  CHECK(get(served.port(), "/metrics?" + most + "&name[]=b").status == 400);
  CHECK(get(served.port(), "/other?" + most + "&name[]=b").status == 404);
}

// The writer of a selection is kept for the next scrape.
TEST_CASE("Exposer: a selection follows the registry and other selections",
          "[http]") {
  ServedThree served;
  CHECK(served.page("name[]=vllm:num_requests_waiting") == kWaiting);
  served.tokens->inc();
  CHECK(served.page("name[]=tokens").ends_with("\ntokens_total 4.0\n"));
  served.tokens->inc();
  CHECK(served.page("name[]=tokens").ends_with("\ntokens_total 5.0\n"));
  CHECK(get(served.port(), "/metrics").body.ends_with(kSum + std::string()));
  const auto late =
      *served.registry->add_gauge({.name = "late", .help = "Late."});
  CHECK(served.page("name[]=late") ==
        "# HELP late Late.\n# TYPE late gauge\nlate 0.0\n");
}

// Prometheus itself sends one header; a proxy may send more.
TEST_CASE("Exposer: headers that are lists may come more than once", "[http]") {
  const Served served;
  const auto answer = get(served.port(), "/metrics",
                          "Accept: text/plain;q=0.5\r\n"
                          "Accept-Encoding: br\r\n"
                          "Accept: application/openmetrics-text;q=0.8\r\n"
                          "accept-encoding: gzip\r\n");
  CHECK(answer.headers.at("content-type") ==
        "application/openmetrics-text; version=1.0.0; charset=utf-8");
  CHECK(answer.headers.at("content-encoding") == "gzip");
  CHECK(get(served.port(), "/metrics",
            "Accept-Encoding: gzip;q=0.5\r\nAccept-Encoding: identity\r\n")
            .body == kPage);
}

TEST_CASE("Exposer: HEAD of a compressed page has the headers of its GET",
          "[http]") {
  const Served served;
  Client client(served.port());
  const auto get = client.get("/metrics", "Accept-Encoding: gzip\r\n");
  client.send(
      "HEAD /metrics HTTP/1.1\r\nHost: test\r\nAccept-Encoding: gzip\r\n\r\n");
  const auto head = client.read_answer(false);
  CHECK(head.status == 200);
  for (const char* name : {"content-type", "content-encoding", "vary"}) {
    CHECK(head.headers.at(name) == get.headers.at(name));
  }
  CHECK(head.headers.at("content-length") == std::to_string(get.body.size()));
  CHECK(client.get("/metrics").body == kPage);  // nothing was left between
}
