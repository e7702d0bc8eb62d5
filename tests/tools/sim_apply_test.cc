#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>

#include "src/tools/sim/simulation.h"
#include "src/tools/sim/workload.h"
#include "vllm_metrics/exposition/text_format.h"

namespace vllm_metrics::sim {
namespace {

// Takes no log lines.
class NoSink final : public LogSink {
 public:
  LogLevel minimum_level() const override { return LogLevel::kError; }
  void write(LogLevel, double, int, std::string_view) override {}
};

std::unique_ptr<Simulation> start(const Parameters& parameters) {
  SimOptions options;
  options.parameters = parameters;
  options.seed = 7;
  Simulation::Hooks hooks;
  hooks.log_sink = std::make_shared<NoSink>();
  auto simulation =
      Simulation::create(options,
                         std::make_unique<SyntheticWorkload>(
                             parameters.workload,
                             SyntheticWorkload::Limits{
                                 .max_tokens = parameters.engine.max_model_len},
                             options.seed),
                         std::move(hooks));
  REQUIRE(simulation.ok());
  return *std::move(simulation);
}

void run_until(Simulation& simulation, double seconds) {
  const Ticks end = to_ticks(seconds);
  while (simulation.next_event() <= end) {
    simulation.run_event(simulation.next_event());
  }
  simulation.advance_to(end);
}

std::string page_of(const Simulation& simulation) {
  TextFormat text;
  return std::string(text.render(*simulation.registry()));
}

// Of the first sample whose line begins so.
double value_of(const std::string& page, const std::string& beginning) {
  const std::size_t at = page.find("\n" + beginning);
  REQUIRE(at != std::string::npos);
  const std::size_t end = page.find('\n', at + 1);
  const std::size_t space = page.rfind(' ', end);
  return std::stod(page.substr(space, end - space));
}

TEST_CASE("Simulation: scheduler and workload change between two steps",
          "[tools]") {
  Parameters parameters;
  parameters.workload.concurrency = 60;
  const auto simulation = start(parameters);
  run_until(*simulation, 20);
  CHECK(simulation->num_running() > 40);
  const double tokens =
      value_of(page_of(*simulation), "vllm:generation_tokens_total{");
  parameters.scheduler.max_num_active_seqs = 10;
  REQUIRE(simulation->apply(parameters).ok());
  run_until(*simulation, 60);
  CHECK(simulation->num_running() <= 10);
  CHECK(simulation->num_waiting() > 40);
  parameters.workload.concurrency = 3;
  parameters.scheduler.max_num_active_seqs = 0;
  REQUIRE(simulation->apply(parameters).ok());
  run_until(*simulation, 120);
  CHECK(simulation->num_running() + simulation->num_waiting() <= 3);
  // It is the same engine: its counters go on.
  CHECK(value_of(page_of(*simulation), "vllm:generation_tokens_total{") >
        tokens);
}

TEST_CASE("Simulation: another engine begins anew with the same requests",
          "[tools]") {
  Parameters parameters;
  parameters.workload.concurrency = 40;
  const auto simulation = start(parameters);
  run_until(*simulation, 30);
  const std::int64_t inside =
      simulation->num_running() + simulation->num_waiting();
  parameters.engine.engines = 2;
  parameters.engine.kv_cache_dtype = "fp8";
  parameters.engine.speculative_tokens = 2;
  REQUIRE(simulation->apply(parameters).ok());
  std::string page = page_of(*simulation);
  CHECK(value_of(page, "vllm:generation_tokens_total{engine=\"1\"") == 0.0);
  CHECK(page.find("cache_dtype=\"fp8\"") != std::string::npos);
  CHECK(value_of(page, "vllm_metrics_sim_seconds") == 30.0);
  run_until(*simulation, 31);
  CHECK(simulation->num_running() + simulation->num_waiting() >= inside - 30);
  run_until(*simulation, 60);
  page = page_of(*simulation);
  CHECK(value_of(page, "vllm:generation_tokens_total{engine=\"1\"") > 0.0);
  CHECK(value_of(page, "vllm:spec_decode_num_drafts_total{") > 0.0);
}

TEST_CASE("Simulation: the engines sleep while their weights are updated",
          "[tools]") {
  Parameters parameters;
  parameters.engine.weight_update_interval = 10.0;
  const auto simulation = start(parameters);
  run_until(*simulation, 10.5);
  const std::string asleep =
      "vllm:engine_sleep_state{engine=\"0\",model_name=\"sim-8b\","
      "sleep_state=\"weights_offloaded\"}";
  std::string page = page_of(*simulation);
  CHECK(value_of(page, asleep) == 1.0);
  const double tokens = value_of(page, "vllm:generation_tokens_total{");
  run_until(*simulation, 11);
  CHECK(value_of(page_of(*simulation), "vllm:generation_tokens_total{") ==
        tokens);
  run_until(*simulation, 15);
  page = page_of(*simulation);
  CHECK(value_of(page, asleep) == 0.0);
  CHECK(value_of(page, "vllm:generation_tokens_total{") > tokens);
}

TEST_CASE("Simulation: refused parameters change nothing", "[tools]") {
  const Parameters before;
  const auto simulation = start(before);
  run_until(*simulation, 5);
  Parameters parameters;
  parameters.engine.device = "abacus";
  parameters.workload.rate = 100.0;
  CHECK_FALSE(simulation->apply(parameters).ok());
  CHECK(simulation->parameters() == before);
  parameters = before;
  parameters.engine.gpu_memory_utilization = 0.1;
  CHECK(std::string(simulation->apply(parameters).message())
            .starts_with("gpu-memory-utilization = 0.1: "));
  run_until(*simulation, 10);
  CHECK(simulation->parameters() == before);
}

TEST_CASE("Simulation: changes at the same moments make the same page",
          "[tools]") {
  const auto run = [] {
    Parameters parameters;
    const auto simulation = start(parameters);
    run_until(*simulation, 10);
    parameters.workload.rate = 30.0;
    REQUIRE(simulation->apply(parameters).ok());
    run_until(*simulation, 20);
    parameters.engine.block_size = 32;
    REQUIRE(simulation->apply(parameters).ok());
    run_until(*simulation, 30);
    return page_of(*simulation);
  };
  const std::string page = run();
  CHECK(page.size() > 10000);
  CHECK(run() == page);
}

}  // namespace
}  // namespace vllm_metrics::sim
