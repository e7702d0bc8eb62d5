#include "src/tools/sandbox/controls.h"

#include <catch2/catch.hpp>
#include <string>

#include "src/tools/sandbox/pages.h"
#include "src/tools/sandbox/session.h"
#include "src/tools/sim/scenario.h"
#include "src/tools/sim/step_cost.h"

using namespace vllm_metrics;  // NOLINT: short names in a test
using sandbox::Json;

namespace {

std::string error_of(const Json& values) {
  sim::Parameters parameters;
  return std::string(sandbox::set_values(values, parameters).message());
}

}  // namespace

TEST_CASE("Controls: what is shown can be set again, and changes nothing",
          "[sandbox]") {
  sim::Parameters parameters;
  REQUIRE(
      sandbox::set_values(sandbox::values_json(parameters), parameters).ok());
  CHECK(parameters == sim::Parameters());
  CHECK(sandbox::values_json(parameters).size() ==
        sandbox::controls_json().size());
}

TEST_CASE("Controls: each end of a range is allowed, and nothing beyond it",
          "[sandbox]") {
  for (const Json& control : sandbox::controls_json()) {
    if (!control.contains("min")) continue;
    const std::string name = control["name"];
    CAPTURE(name);
    const double min = control["min"];
    const double max = control["max"];
    CHECK(error_of({{name, min}}).empty());
    CHECK(error_of({{name, max}}).empty());
    CHECK_FALSE(error_of({{name, min - 1}}).empty());
    CHECK_FALSE(error_of({{name, max + 1}}).empty());
    CHECK_FALSE(error_of({{name, "many"}}).empty());
    CHECK_FALSE(error_of({{name, nullptr}}).empty());
    if (control["kind"] == "whole") {
      CHECK_FALSE(error_of({{name, max - 0.5}}).empty());
    }
  }
}

TEST_CASE("Controls: an error names parameter, value and what is allowed",
          "[sandbox]") {
  CHECK(error_of({{"rate", -3}}) ==
        "rate = -3; allowed: a number from 0.1 to 100");
  CHECK(error_of({{"block-size", 17}}) ==
        "block-size = 17; allowed: 8, 16, 32, 64, 128, 256");
  CHECK(error_of({{"enforce-eager", 1}}) ==
        "enforce-eager = 1; allowed: true or false");
  CHECK(error_of({{"kv-cache-dtype", "int3"}}) ==
        "kv-cache-dtype = \"int3\"; allowed: auto, fp8, nvfp4");
  CHECK(error_of({{"turbo", 1}}) ==
        "parameters = \"turbo\"; allowed: the names that /api/controls lists");
  CHECK(error_of({{"rate", std::string(1000, 'x')}}).size() < 150);
}

TEST_CASE("Controls: a scenario's blocks are as many when memory gives them",
          "[sandbox]") {
  for (const sim::Scenario& scenario : sim::known_scenarios()) {
    CAPTURE(scenario.name);
    const auto wanted = scenario.parameters().engine;
    const auto engine =
        sandbox::with_blocks_from_memory(scenario.parameters()).engine;
    CHECK_FALSE(engine.num_gpu_blocks.has_value());
    CHECK(sim::StepCostModel::create(engine)->num_gpu_blocks() ==
          sim::StepCostModel::create(wanted)->num_gpu_blocks());
  }
}

TEST_CASE("Session: an order is taken whole or not at all", "[sandbox]") {
  sandbox::Session session{sim::SimOptions()};
  const Json before = session.state();
  CHECK_FALSE(session
                  .order({{"speed", 10},
                          {"parameters", {{"rate", 20}, {"engines", 99}}}})
                  .ok());
  CHECK_FALSE(session.order({{"speed", 10}, {"fast", true}}).ok());
  CHECK_FALSE(session.order({{"parameters", {{"model", "dense-70b"}}}}).ok());
  CHECK_FALSE(session.order({{"parameters", {{"turns", 3}}}}).ok());
  CHECK(session.order({{"parameters", {{"enable-expert-parallel", true}}}})
            .message() ==
        "enable-expert-parallel = on; allowed: only for a model with experts");
  CHECK_FALSE(session.order(Json::array()).ok());
  CHECK(session.state() == before);

  REQUIRE(session.order({{"speed", 10}, {"parameters", {{"rate", 20}}}}).ok());
  const Json after = session.state();
  CHECK(after["revision"] == 1);
  CHECK(after["applied"] == 0);
  CHECK(after["speed"] == 10.0);
  CHECK(after["parameters"]["rate"] == 20.0);
}

TEST_CASE("Session: parameters beside a scenario change it, in any order",
          "[sandbox]") {
  sandbox::Session session{sim::SimOptions()};
  REQUIRE(session
              .order({{"parameters", {{"max-num-active-seqs", 20}}},
                      {"scenario", "preemption-storm"}})
              .ok());
  const Json state = session.state();
  CHECK(state["scenario"] == "preemption-storm");
  CHECK(state["parameters"]["max-num-active-seqs"] == 20);
  CHECK(state["parameters"]["output-tokens"] == 1200.0);
}

TEST_CASE("Pages: orders of other sites are known", "[sandbox]") {
  using sandbox::is_own_request;
  CHECK(is_own_request("127.0.0.1:8000", ""));
  CHECK(is_own_request("127.0.0.1:8000", "http://127.0.0.1:8000"));
  CHECK(is_own_request("localhost:8000", "http://localhost:8000"));
  CHECK(is_own_request("[::1]:8000", ""));
  CHECK_FALSE(is_own_request("", ""));
  CHECK_FALSE(is_own_request("rebound.example:8000", ""));
  CHECK_FALSE(is_own_request("127.0.0.1.example", ""));
  CHECK_FALSE(is_own_request("localhost.example", ""));
  CHECK_FALSE(is_own_request("127.0.0.1:8000", "http://a.example"));
  CHECK_FALSE(is_own_request("127.0.0.1:8000", "http://127.0.0.1:9000"));
  CHECK_FALSE(is_own_request("127.0.0.1:8000", "null"));
}

TEST_CASE("Pages: a body that is no order is told from one", "[sandbox]") {
  using sandbox::parse_body;
  CHECK(parse_body(R"({"parameters": {"rate": 1}})").is_object());
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("{} {}"),
        std::string("\xff"), std::string(16000, '['),
        std::string("[[[[[1]]]]]")}) {
    CAPTURE(text.substr(0, 20));
    CHECK(parse_body(text).is_discarded());
  }
}
