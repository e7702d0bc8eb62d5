#include "vllm_metrics/loggers/stat_logger_manager.h"

#include <catch2/catch.hpp>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/loggers/surroundings.h"
#include "vllm_metrics/loggers/prometheus_stat_logger.h"

namespace vllm_metrics {
namespace {

using namespace vllm_metrics::testing;
using Lines = std::vector<std::string>;

// Tells a shared list of what it was called for.
class Probe : public StatLoggerBase {
 public:
  Probe(std::string label, Lines& calls)
      : label_(std::move(label)), calls_(calls) {}
  std::string_view name() const override { return "probe"; }
  void record(const StepRecord& step) override {
    calls_.push_back(label_ + " record " + std::to_string(step.engine_index));
  }
  void log() override { calls_.push_back(label_ + " log"); }
  void log_engine_initialized() override {
    calls_.push_back(label_ + " initialized");
  }
  void record_sleep_state(const SleepState& state) override {
    calls_.push_back(label_ + " sleep " + std::to_string(state.level));
  }

 private:
  std::string label_;
  Lines& calls_;
};

AggregateStatLoggerFactory aggregate(Lines& calls) {
  return [&calls](const StatLoggerOptions&)
             -> absl::StatusOr<std::unique_ptr<StatLoggerBase>> {
    return std::make_unique<Probe>("all", calls);
  };
}

PerEngineStatLoggerFactory per_engine(Lines& calls) {
  return [&calls](const StatLoggerOptions&, int engine_index)
             -> absl::StatusOr<std::unique_ptr<StatLoggerBase>> {
    return std::make_unique<Probe>("e" + std::to_string(engine_index), calls);
  };
}

class Throwing : public StatLoggerBase {
 public:
  std::string_view name() const override { return "broken"; }
  void record(const StepRecord&) override { throw std::runtime_error("disk"); }
  void log() override { throw 42; }
};

std::unique_ptr<StatLoggerManager> made(StatLoggerOptions options) {
  auto manager = StatLoggerManager::create(std::move(options));
  INFO(manager.status());
  REQUIRE(manager.ok());
  return *std::move(manager);
}

std::string error_of(StatLoggerOptions options) {
  return std::string(
      StatLoggerManager::create(std::move(options)).status().message());
}

TEST_CASE("manager: a second one on the same registry names what clashes",
          "[loggers]") {
  const Surroundings around;
  IterationStats iteration;
  iteration.num_generation_tokens = 10;
  auto first = made(around.options());
  for (int i = 0; i < 3; ++i) first->record(nullptr, &iteration);

  const auto second = StatLoggerManager::create(around.options());
  CHECK(second.status().code() == absl::StatusCode::kAlreadyExists);
  CHECK(second.status().message().find("vllm:generation_tokens") !=
        std::string_view::npos);
  CHECK(of_engine0(around.page(), "vllm:generation_tokens_total") == "30.0");

  first = nullptr;
  CHECK(around.page().empty());
  first = made(around.options());
  iteration.num_generation_tokens = 4;
  first->record(nullptr, &iteration);
  const std::string page = around.page();
  CHECK(of_engine0(page, "vllm:generation_tokens_total") == "4.0");
  const std::string type = "# TYPE vllm:generation_tokens_total counter\n";
  CHECK(page.find(type) != std::string::npos);
  CHECK(page.find(type) == page.rfind(type));
}

TEST_CASE("manager: two models share one page", "[loggers]") {
  const Surroundings around;
  StatLoggerOptions other = around.options();
  other.model_name = "other";
  other.max_model_len = 100;  // its token buckets end earlier
  const auto a = made(around.options());
  const auto b = made(other);
  a->log_engine_initialized();
  b->log_engine_initialized();
  IterationStats iteration;
  iteration.num_generation_tokens = 1;
  a->record(nullptr, &iteration);
  b->record(nullptr, &iteration);
  b->record(nullptr, &iteration);
  const std::string page = around.page();
  CHECK(of_engine0(page, "vllm:generation_tokens_total") == "1.0");
  CHECK(value(page,
              "vllm:generation_tokens_total{engine=\"0\",model_name="
              "\"other\"}") == "2.0");
  CHECK(bucket(page, "vllm:request_prompt_tokens", "5000.0") == "0.0");
  CHECK(page.find("le=\"200.0\",model_name=\"other\"") == std::string::npos);
  CHECK(page.find("# HELP vllm:generation_tokens_total") ==
        page.rfind("# HELP vllm:generation_tokens_total"));
  // The same configuration of both is one series.
  CHECK(value(page, "vllm:cache_config_info{engine=\"0\"}") == "1.0");
}

TEST_CASE("manager: custom loggers come first, the default ones follow",
          "[loggers]") {
  const Surroundings around;
  Lines calls;
  StatLoggerOptions options = around.options();
  options.engine_indexes = {3, 1};
  options.factories = {per_engine(calls), aggregate(calls)};
  const auto manager = made(options);
  manager->log_engine_initialized();
  manager->record(nullptr, nullptr, nullptr, 1);
  manager->record_sleep_state({.sleep = 1, .level = 2});
  manager->log();
  CHECK(calls == Lines{"e3 initialized", "e1 initialized", "all initialized",
                       "e1 record 1", "all record 1", "all sleep 2", "e3 log",
                       "e1 log", "all log"});
  CHECK(around.log->lines.size() == 2);
  CHECK(around.log->lines[0].starts_with("DEBUG Engine 003: Avg"));
  CHECK(around.log->lines[1].starts_with("DEBUG Engine 001: Avg"));
}

TEST_CASE("manager: a logger that exposes the catalogue replaces the default",
          "[loggers]") {
  class Mine final : public PrometheusStatLogger {
   public:
    using PrometheusStatLogger::PrometheusStatLogger;
    std::string_view name() const override { return "mine"; }
  };
  const Surroundings around;
  StatLoggerOptions options = around.options();
  options.factories = {AggregateStatLoggerFactory(
      [](const StatLoggerOptions& given)
          -> absl::StatusOr<std::unique_ptr<StatLoggerBase>> {
        auto state = PrometheusStatLogger::prepare(given);
        if (!state.ok()) return state.status();
        return std::make_unique<Mine>(*state);
      })};
  const auto manager = made(options);
  IterationStats iteration;
  iteration.num_generation_tokens = 2;
  manager->record(nullptr, &iteration);
  CHECK(of_engine0(around.page(), "vllm:generation_tokens_total") == "2.0");
  CHECK(value(around.page(),
              "vllm_metrics_logger_errors_total{logger=\"mine\",model_name="
              "\"m\"}") == "0.0");
  CHECK(around.page().find("logger=\"prometheus\"") == std::string::npos);
}

TEST_CASE("manager: the text logger depends on four switches", "[loggers]") {
  const Surroundings around;
  StatLoggerOptions options = around.options();
  SECTION("default loggers off") {
    options.default_loggers = false;
    options.client_count = 2;
    made(options)->log();
    CHECK(around.log->lines.empty());
  }
  SECTION("several clients") {
    options.client_count = 2;
    made(options)->log();
    CHECK(around.log->lines ==
          Lines{"WARNING AsyncLLM created with api_server_count more than 1; "
                "disabling stats logging to avoid incomplete stats."});
  }
  SECTION("INFO not enabled") {
    const auto log = std::make_shared<CapturedLog>(LogLevel::kWarning);
    options.log_sink = log;
    options.client_count = 2;
    made(options)->log();
    CHECK(log->lines.empty());
  }
  SECTION("aggregated") {
    options.aggregate_engine_logging = true;
    options.engine_indexes = {0, 1};
    made(options)->log();
    REQUIRE(around.log->lines.size() == 1);
    CHECK(around.log->lines[0].starts_with("DEBUG 2 Engines Aggregated: "));
  }
}

TEST_CASE("manager: without log_stats there is nothing to call", "[loggers]") {
  const Surroundings around;
  Lines calls;
  StatLoggerOptions options = around.options();
  options.log_stats = false;
  options.factories = {aggregate(calls)};
  const auto manager = made(options);
  manager->record(nullptr, nullptr, nullptr, 99);
  manager->log();
  CHECK(calls.empty());
  CHECK(around.log->lines.empty());
  CHECK(around.page().empty());
}

TEST_CASE("manager: a throwing logger is reported once, counted, contained",
          "[loggers]") {
  const Surroundings around;
  StatLoggerOptions options = around.options();
  options.engine_indexes = {0, 1};
  const bool for_each_engine = GENERATE(false, true);
  if (for_each_engine) {
    options.factories = {PerEngineStatLoggerFactory(
        [](const StatLoggerOptions&,
           int) -> absl::StatusOr<std::unique_ptr<StatLoggerBase>> {
          return std::make_unique<Throwing>();
        })};
  } else {
    options.factories = {AggregateStatLoggerFactory(
        [](const StatLoggerOptions&)
            -> absl::StatusOr<std::unique_ptr<StatLoggerBase>> {
          return std::make_unique<Throwing>();
        })};
  }
  const auto manager = made(options);
  IterationStats iteration;
  iteration.num_generation_tokens = 5;
  manager->record(nullptr, &iteration);
  manager->record(nullptr, &iteration, nullptr, 1);
  around.clock->advance(1.0);
  manager->log();

  const std::string page = around.page();
  CHECK(of_engine0(page, "vllm:generation_tokens_total") == "5.0");
  // Both engines' loggers threw in log() where there are two.
  CHECK(value(page,
              "vllm_metrics_logger_errors_total{logger=\"broken\",model_name="
              "\"m\"}") == (for_each_engine ? "4.0" : "3.0"));
  REQUIRE(around.log->lines.size() == 3);
  CHECK(around.log->lines[0] ==
        "ERROR Stat logger broken threw and is called on; this is reported "
        "once: disk");
  CHECK(around.log->lines[1].starts_with("INFO Engine 000: "));
}

TEST_CASE("manager: a sink that throws hurts nobody", "[loggers]") {
  class BrokenSink final : public LogSink {
   public:
    LogLevel minimum_level() const override { return LogLevel::kDebug; }
    void write(LogLevel, double, int, std::string_view) override {
      throw std::runtime_error("no space");
    }
  };
  const Surroundings around;
  StatLoggerOptions options = around.options();
  options.log_sink = std::make_shared<BrokenSink>();
  const auto manager = made(options);
  manager->log();
  manager->record(nullptr, nullptr, nullptr, 5);
  CHECK(value(around.page(),
              "vllm_metrics_logger_errors_total{logger=\"logging\",model_name="
              "\"m\"}") == "1.0");
}

TEST_CASE("manager: steps of undeclared engines are warned of and counted",
          "[loggers]") {
  const Surroundings around;
  const auto manager = made(around.options());
  IterationStats iteration;
  iteration.num_generation_tokens = 1;
  for (const int index : {7, 7, -1, 7, std::numeric_limits<int>::max()}) {
    manager->record(nullptr, &iteration, nullptr, index);
  }
  CHECK(around.log->lines ==
        Lines{"WARNING Unexpected engine_idx: 7",
              "WARNING Unexpected engine_idx: -1",
              "WARNING Unexpected engine_idx: 2147483647"});
  CHECK(value(around.page(),
              "vllm_metrics_undeclared_engine_records_total{model_name="
              "\"m\"}") == "5.0");
  CHECK(of_engine0(around.page(), "vllm:generation_tokens_total") == "0.0");
}

TEST_CASE("manager: an option that is not allowed is named with its value",
          "[loggers]") {
  const Surroundings around;
  StatLoggerOptions o = around.options();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::string e2e = "vllm:e2e_request_latency_seconds";
  std::string expected;
  SECTION("model name") {
    o.model_name = "";
    expected = "model_name is empty; allowed: the served model's name";
  }
  SECTION("model length") {
    o.max_model_len = 0;
    expected = "max_model_len = 0; allowed: 1 or more";
  }
  SECTION("negative engine index") {
    o.engine_indexes = {0, -2};
    expected = "engine_indexes[1] = -2; allowed: 0 or more";
  }
  SECTION("engine index twice") {
    o.engine_indexes = {4, 2, 4};
    expected =
        "engine_indexes[2] = 4 is also engine_indexes[0]; allowed: each once";
  }
  SECTION("blocks") {
    o.num_gpu_blocks = -1;
    expected = "num_gpu_blocks = -1; allowed: 0 or more";
  }
  SECTION("cache config") {
    o.cache_config = {{"block_size", "16"}, {"engine", "1"}};
    expected =
        "cache_config: family vllm:cache_config_info: label \"engine\" is "
        "given twice";
  }
  SECTION("KV metrics without statistics") {
    o.kv_cache_metrics = true;
    o.log_stats = false;
    expected =
        "kv_cache_metrics = true needs log_stats = true; without it there is "
        "nothing to record to";
  }
  SECTION("client count") {
    o.client_count = 0;
    expected = "client_count = 0; allowed: 1 or more";
  }
  SECTION("empty factory") {
    o.factories = {PerEngineStatLoggerFactory()};
    expected =
        "factories[0] is an empty function; allowed: one that makes a stat "
        "logger";
  }
  SECTION("wire version") {
    o.wire_version = {0, 26};
    expected = "wire_version = 0.26; allowed: 0.27 to 0.32";
  }
  SECTION("buckets of an unknown family") {
    o.buckets = {{"vllm:nope", {1}}};
    expected =
        "buckets[0].family = \"vllm:nope\" is not a histogram of the "
        "catalogue; allowed: e.g. \"" +
        e2e + "\"";
  }
  SECTION("the same family twice") {
    o.buckets = {{e2e, {1}}, {e2e, {2}}};
    expected = "buckets[1].family = \"" + e2e + "\" is also buckets[0].family";
  }
  SECTION("bad bounds") {
    const auto [bounds, why] =
        GENERATE_COPY(table<std::vector<double>, std::string>(
            {{{0.1, 0.1}, "bounds[1] = 0.1 is not above bounds[0] = 0.1"},
             {{0.3, 0.1}, "bounds[1] = 0.1 is not above bounds[0] = 0.3"},
             {{nan}, "bounds[0] = nan is not finite"},
             {std::vector<double>{}, "at least one finite bound is needed"}}));
    o.buckets = {{e2e, bounds}};
    expected = "buckets[0] of " + e2e + ": " + why +
               "; allowed: rising finite numbers";
  }
  SECTION("bad latency bounds") {
    o.latency_buckets = {2, 1};
    expected =
        "latency_buckets: bounds[1] = 1 is not above bounds[0] = 2; allowed: "
        "rising finite numbers";
  }
  SECTION("step metrics without a writer") {
    o.step_metrics.metrics.resize(1);
    expected =
        "step_metrics.metrics has 1 entries and step_metrics.write is empty; "
        "allowed: both or neither";
  }
  SECTION("a factory that fails") {
    o.factories = {PerEngineStatLoggerFactory(
        [](const StatLoggerOptions&,
           int) -> absl::StatusOr<std::unique_ptr<StatLoggerBase>> {
          return absl::UnavailableError("broker is down");
        })};
    expected = "stat logger of engine 0: broker is down";
  }
  SECTION("a factory that returns nothing") {
    o.factories = {AggregateStatLoggerFactory(
        [](const StatLoggerOptions&)
            -> absl::StatusOr<std::unique_ptr<StatLoggerBase>> {
          return nullptr;
        })};
    expected = "a stat logger factory returned a null logger";
  }
  SECTION("a factory that throws") {
    o.factories = {AggregateStatLoggerFactory(
        [](const StatLoggerOptions&)
            -> absl::StatusOr<std::unique_ptr<StatLoggerBase>> {
          throw std::runtime_error("no plug");
        })};
    expected = "a stat logger factory threw: no plug";
  }
  SECTION("a step metric with a bad name") {
    o.step_metrics.metrics = {{.family = {.name = "a b", .help = "x"}}};
    o.step_metrics.write = [](const StepRecord&, StepWriter&) {};
    expected =
        "family \"a b\" is not a metric name; allowed: [a-zA-Z_:][a-zA-Z0-9_:"
        "]*";
  }
  CHECK(error_of(o) == expected);
  // Nothing is left behind on the page.
  CHECK(around.page().empty());
}

TEST_CASE("manager: no engine index means engine 0", "[loggers]") {
  const Surroundings around;
  StatLoggerOptions options = around.options();
  options.engine_indexes = {};
  const auto manager = made(options);
  SchedulerStats scheduler;
  scheduler.num_running_reqs = 1;
  manager->record(&scheduler, nullptr);
  CHECK(of_engine0(around.page(), "vllm:num_requests_running") == "1.0");
}

TEST_CASE("manager: it brings its own registry, clock and sink if need be",
          "[loggers]") {
  const auto manager =
      made({.model_name = "m", .max_model_len = 1, .default_loggers = false});
  REQUIRE(manager->registry() != nullptr);
  CHECK(of_engine0(std::string(TextFormat().render(*manager->registry())),
                   "vllm:num_requests_running") == "0.0");
}

}  // namespace
}  // namespace vllm_metrics
