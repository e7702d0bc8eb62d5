#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "tests/http/client.h"
#include "vllm_metrics/exposition/page_writer.h"
#include "vllm_metrics/http/exposer.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics::http {
namespace {

constexpr auto kType = "text/plain; version=0.0.4; charset=utf-8";

// Stands for a format of an optional component.
class CountingWriter final : public PageWriter {
 public:
  std::string_view render(const Snapshot& snapshot) override {
    text_ = "families: " + std::to_string(snapshot.schema->families.size());
    for (const auto& [family, series] : snapshot.schema->families)
      text_.append(" ").append(family.name);
    return text_;
  }

 private:
  std::string text_;
};

TEST_CASE("Exposer: protobuf is for who names it, where there is a writer",
          "[http]") {
  const std::string accept =
      "Accept: application/vnd.google.protobuf;"
      "proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7,"
      "text/plain;version=0.0.4;q=0.3\r\n";
  const auto registry = Registry::create();
  const auto tokens =
      *registry->add_counter({.name = "tokens", .help = "Tokens."});
  ExposerOptions options;
  options.port = 0;
  options.process_metrics = false;
  std::string type = kType;
  int status = 200;
  SECTION("without") {}
  SECTION("with") {
    options.protobuf = [] { return std::make_unique<CountingWriter>(); };
    type =
        "application/vnd.google.protobuf; "
        "proto=io.prometheus.client.MetricFamily; encoding=delimited";
  }
  SECTION("one that makes none") {
    options.protobuf = [] { return nullptr; };
    type = "text/plain; charset=utf-8";
    status = 503;
  }
  const auto endpoint = *Exposer::start(registry, options);
  for (int i = 0; i < 2; ++i) {
    const auto answer = get(endpoint->port(), "/metrics", accept);
    CHECK(answer.status == status);
    CHECK(answer.headers.at("content-type") == type);
    CHECK(answer.body.starts_with("families: ") ==
          (status == 200 && type != kType));
  }
}

TEST_CASE("Exposer: name[] selects families of a protobuf page", "[http]") {
  const auto registry = Registry::create();
  const auto tokens = *registry->add_counter({.name = "tokens"});
  const auto waiting = *registry->add_gauge({.name = "waiting"});
  const auto wait =
      *registry->add_histogram({.name = "wait"}, std::array{1.0, 2.0});
  ExposerOptions options;
  options.port = 0;
  options.process_metrics = false;
  options.self_metrics = false;
  options.protobuf = [] { return std::make_unique<CountingWriter>(); };
  const auto endpoint = *Exposer::start(registry, options);
  const auto page = [&](const std::string& query) {
    return get(endpoint->port(), "/metrics?" + query,
               "Accept: application/vnd.google.protobuf;"
               "proto=io.prometheus.client.MetricFamily;encoding=delimited\r\n")
        .body;
  };
  CHECK(page("") == "families: 3 tokens waiting wait");
  CHECK(page("name[]=wait_count&name[]=tokens") == "families: 2 tokens wait");
  CHECK(page("name[]=tokens_total") == "families: 1 tokens");
  CHECK(page("name[]=waiting") == "families: 1 waiting");
  CHECK(page("name[]=waiting_total&name[]=wai&name[]=tokens_sum") ==
        "families: 0");
  const auto late = *registry->add_gauge({.name = "late"});
  CHECK(page("name[]=late") == "families: 1 late");
}

}  // namespace
}  // namespace vllm_metrics::http
