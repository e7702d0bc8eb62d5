#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "vllm_metrics/exposition/text_format.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"

// The trace that vLLM's own loggers saw, given to the public API call by call.
// Apart from the replay program, so that a fault of its reader cannot hide one
// of the library; this reader trusts the trace and knows only what d01 has.
namespace {

using namespace vllm_metrics;
using Json = nlohmann::json;

const std::string kName = VLLM_METRICS_TEST_DATA "/golden/d01_basic";

struct ManualClock : Clock {
  double wall() const noexcept override { return wall_time; }
  double monotonic() const noexcept override { return mono_time; }
  double wall_time = 0.0;
  double mono_time = 0.0;
};

struct Lines : LogSink {
  LogLevel minimum_level() const override { return LogLevel::kDebug; }
  void write(LogLevel level, double, int, std::string_view text) override {
    all += std::string(name_of(level)) + " " + std::string(text) + "\n";
  }
  std::string all;
};

SchedulerStats scheduler_from(const Json& json) {
  SchedulerStats stats;
  stats.num_running_reqs = json.at("num_running_reqs");
  stats.num_waiting_reqs = json.at("num_waiting_reqs");
  stats.num_skipped_waiting_reqs = json.at("num_skipped_waiting_reqs");
  stats.kv_cache_usage = json.at("kv_cache_usage");
  const Json& cache = json.at("prefix_cache_stats");
  stats.prefix_cache_stats.reset = cache.value("reset", false);
  stats.prefix_cache_stats.requests = cache.at("requests");
  stats.prefix_cache_stats.queries = cache.at("queries");
  stats.prefix_cache_stats.hits = cache.at("hits");
  return stats;
}

EngineCoreEvent event_from(const Json& json) {
  using Type = EngineCoreEvent::Type;
  const std::string name = json.at(0);
  return {name == "queued"      ? Type::kQueued
          : name == "scheduled" ? Type::kScheduled
                                : Type::kPreempted,
          json.at(1)};
}

FinishReason reason_from(const std::string& name) {
  const auto found =
      std::find(kFinishReasonNames.begin(), kFinishReasonNames.end(), name);
  REQUIRE(found != kFinishReasonNames.end());
  return static_cast<FinishReason>(found - kFinishReasonNames.begin());
}

// The front end of the engine whose outputs the trace holds.
class Engine {
 public:
  explicit Engine(const Json& config) {
    StatLoggerOptions options;
    options.model_name = config.at("model_name");
    options.max_model_len = config.at("max_model_len");
    options.num_gpu_blocks = config.at("num_gpu_blocks").get<std::int64_t>();
    for (const Json& pair : config.at("cache_config")) {
      options.cache_config.emplace_back(pair.at(0), pair.at(1));
    }
    options.clock = clock;
    options.log_sink = lines;
    set_clock(config);
    auto created = StatLoggerManager::create(options);
    REQUIRE(created.ok());
    manager = *std::move(created);
  }

  void play(const Json& event) {
    set_clock(event);
    const std::string op = event.at("op");
    if (op == "init") manager->log_engine_initialized();
    if (op == "log") manager->log();
    if (op == "sleep") {
      manager->record_sleep_state({event.at("sleep"), event.at("level")});
    }
    if (op == "request") begin(event);
    if (op == "output") step(event);
  }

  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  std::shared_ptr<Lines> lines = std::make_shared<Lines>();
  std::unique_ptr<StatLoggerManager> manager;

 private:
  void set_clock(const Json& event) {
    clock->wall_time = event.value("wall", clock->wall_time);
    clock->mono_time = event.value("mono", clock->mono_time);
  }

  void begin(const Json& event) {
    RequestStateStats& request = requests_[event.at("id")];
    request.arrival_time = event.at("arrival");
    request.num_prompt_tokens = event.at("prompt_len");
    if (event.at("max_tokens").is_number()) {
      request.max_tokens_param = event.at("max_tokens").get<std::int64_t>();
    }
    const Json& parent = event.at("parent");
    if (parent.is_null()) return;
    std::shared_ptr<ParentRequest>& shared = parents_[parent.at(0)];
    if (shared == nullptr) {
      shared = std::make_shared<ParentRequest>(parent.at(1));
    }
    request.parent = shared;
  }

  void step(const Json& event) {
    iteration_.reset(clock->wall_time);
    for (const Json& json : event.at("outputs")) {
      RequestStateStats& request = requests_.at(json.at("id"));
      std::vector<EngineCoreEvent> events;
      for (const Json& pair : json.value("events", Json::array())) {
        events.push_back(event_from(pair));
      }
      EngineCoreOutput output;
      output.num_new_tokens = json.value("tokens", 0);
      output.events = events;
      if (json.contains("prefill")) {
        const Json& counts = json["prefill"];
        output.prefill_stats = {counts.at(0), counts.at(1), counts.at(2)};
      }
      iteration_.update_from_output(output, event.at("ts"), request);
      if (json.contains("finish")) {
        iteration_.update_from_finished_request(reason_from(json["finish"]),
                                                request);
      }
    }
    const SchedulerStats scheduler = scheduler_from(event.at("scheduler"));
    manager->record(&scheduler, &iteration_);
  }

  std::map<std::string, RequestStateStats> requests_;
  std::map<std::string, std::shared_ptr<ParentRequest>> parents_;
  IterationStats iteration_;
};

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  REQUIRE(file.is_open());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// vLLM's families without HELP, sorted: the form of the expected pages.
std::vector<std::string> lines_of(std::string_view page) {
  std::vector<std::string> lines;
  std::istringstream stream{std::string(page)};
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("vllm:") || line.starts_with("# TYPE vllm:")) {
      lines.push_back(line);
    }
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

// Equal to the letter; a sum may differ by 1e-12 of its size, since the order
// of a floating-point sum is not part of the contract.
bool is_same(const std::string& expected, const std::string& actual) {
  if (expected == actual) return true;
  const std::size_t end = expected.rfind(' ');
  const std::string name = expected.substr(0, expected.find('{'));
  if (!name.ends_with("_sum") || actual.rfind(' ') != end ||
      actual.compare(0, end, expected, 0, end) != 0) {
    return false;
  }
  const double a = std::stod(expected.substr(end));
  const double b = std::stod(actual.substr(end));
  return std::abs(a - b) <= 1e-12 * std::max(std::abs(a), std::abs(b));
}

}  // namespace

TEST_CASE(
    "StatLoggerManager: the events that vLLM's loggers saw give vLLM's page "
    "and log lines",
    "[loggers]") {
  std::ifstream trace(kName + ".jsonl");
  REQUIRE(trace.is_open());
  std::string line;
  REQUIRE(std::getline(trace, line));
  Engine engine(Json::parse(line));
  while (std::getline(trace, line)) engine.play(Json::parse(line));

  const auto expected = lines_of(text_of(kName + ".expected.prom"));
  const auto actual =
      lines_of(TextFormat().render(*engine.manager->registry()));
  REQUIRE(expected.size() == 365);
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO("expected " << expected[i] << "\nfound    " << actual[i]);
    CHECK(is_same(expected[i], actual[i]));
  }
  CHECK(engine.lines->all == text_of(kName + ".expected.log"));
}
