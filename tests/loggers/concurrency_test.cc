#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/loggers/surroundings.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"

namespace vllm_metrics {
namespace {

using namespace vllm_metrics::testing;

class SilentLog final : public LogSink {
 public:
  void write(LogLevel, double, int, std::string_view) override {
    written.fetch_add(1, std::memory_order_relaxed);
  }
  std::atomic<int> written{0};
};

// Everything inside one scrape that must agree, engine by engine: a step here
// is one finished request of 3 prompt tokens (1 from each source), 2 outputs.
class Invariants {
 public:
  explicit Invariants(std::size_t engines) : steps_(engines) {}

  void check(const Snapshot& snapshot) {
    const auto family = [&](std::string_view name) -> const SchemaFamily& {
      for (const SchemaFamily& f : snapshot.schema->families) {
        if (f.family.name == name) return f;
      }
      throw std::runtime_error("no family");
    };
    const auto count = [&](const Series& series) {
      std::uint64_t n = 0;
      for (const auto bucket : snapshot.buckets(series)) n += bucket;
      return n;
    };
    for (std::size_t e = 0; e < steps_.size(); ++e) {
      const auto steps = count(family("vllm:iteration_tokens_total").series[e]);
      const Series& itl = family("vllm:inter_token_latency_seconds").series[e];
      const Series& e2e = family("vllm:e2e_request_latency_seconds").series[e];
      bool agrees = count(itl) == 2 * steps && count(e2e) == steps;
      agrees &= snapshot.sum(itl) == 2.0 * static_cast<double>(steps);
      agrees &=
          snapshot.integer(family("vllm:prompt_tokens").series[e]) == 3 * steps;
      for (std::size_t s = 0; s < 3; ++s) {
        agrees &=
            snapshot.integer(
                family("vllm:prompt_tokens_by_source").series[3 * e + s]) ==
            steps;
      }
      agrees &= snapshot.integer(
                    family("vllm:request_success").series[5 * e + 1]) == steps;
      agrees &= steps >= steps_[e];
      steps_[e] = steps;
      torn_ += agrees ? 0U : 1U;
    }
  }
  std::size_t torn() const { return torn_; }

 private:
  std::vector<std::uint64_t> steps_;
  std::size_t torn_ = 0;
};

IterationStats one_step() {
  IterationStats iteration;
  iteration.prompt_token_stats.update({.num_prompt_tokens = 3,
                                       .num_local_cached_tokens = 1,
                                       .num_external_cached_tokens = 1});
  iteration.inter_token_latencies_iter = {1.0, 1.0};
  iteration.finished_requests.resize(1);
  iteration.finished_requests[0].finish_reason = FinishReason::kLength;
  return iteration;
}

TEST_CASE("four writers and a scraper: no step is torn and none is lost",
          "[loggers][concurrent]") {
  // About ten seconds under ThreadSanitizer on two cores.
  constexpr std::uint64_t kSteps = 150'000;
  const Surroundings around;
  StatLoggerOptions options = around.options();
  options.clock = Clock::system();
  options.log_sink = std::make_shared<SilentLog>();
  // Two engines with a writer each, one engine with two.
  options.engine_indexes = {0, 1, 2};
  auto manager = *StatLoggerManager::create(options);

  std::atomic<int> running{4};
  std::vector<std::thread> writers;
  for (const int engine : {0, 1, 2, 2}) {
    writers.emplace_back([&, engine] {
      const IterationStats iteration = one_step();
      const SchedulerStats scheduler;
      for (std::uint64_t i = 0; i < kSteps; ++i) {
        manager->record(&scheduler, &iteration, nullptr, engine);
      }
      running.fetch_sub(1);
    });
  }
  Invariants invariants(3);
  TextFormat format;
  Snapshot snapshot;
  std::size_t scrapes = 0;
  while (running.load() > 0) {
    around.registry->snapshot(snapshot);
    invariants.check(snapshot);
    CHECK(!format.render(snapshot).empty());
    if (++scrapes % 64 == 0) manager->log();
  }
  for (std::thread& writer : writers) writer.join();
  around.registry->snapshot(snapshot);
  invariants.check(snapshot);

  CHECK(invariants.torn() == 0);
  CHECK(scrapes > 0);
  const std::string page(format.render(snapshot));
  for (const auto& [engine, steps] :
       {std::pair{"0", kSteps}, {"1", kSteps}, {"2", 2 * kSteps}}) {
    CHECK(std::stod(value(page,
                          "vllm:e2e_request_latency_seconds_count{engine="
                          "\"" +
                              std::string(engine) + "\",model_name=\"m\"}")) ==
          static_cast<double>(steps));
  }
}

TEST_CASE("a scrape that races with a manager's end is a whole page or none",
          "[loggers][concurrent]") {
  const Surroundings around;
  StatLoggerOptions options = around.options();
  options.clock = Clock::system();
  options.default_loggers = false;
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::thread scraper([&] {
    TextFormat format;
    while (!stop.load()) {
      const std::string page(format.render(*around.registry));
      const bool has_first =
          page.find("\nvllm:num_requests_running{") != std::string::npos;
      const bool has_last =
          page.find("\nvllm:request_num_preemptions_sum{") != std::string::npos;
      if (has_first != has_last) wrong.fetch_add(1);
    }
  });
  const IterationStats iteration = one_step();
  for (int i = 0; i < 500; ++i) {
    const auto manager = *StatLoggerManager::create(options);
    manager->record(nullptr, &iteration);
    if (i % 2 == 0) manager->log_engine_initialized();
  }
  stop = true;
  scraper.join();
  CHECK(wrong.load() == 0);
}

TEST_CASE("record, log and sleep calls of several threads do not mix",
          "[loggers][concurrent]") {
  const Surroundings around;
  StatLoggerOptions options = around.options();
  options.clock = Clock::system();
  options.log_sink = std::make_shared<SilentLog>();
  options.engine_indexes = {0, 1};
  options.aggregate_engine_logging = GENERATE(false, true);
  const auto manager = *StatLoggerManager::create(options);
  std::vector<std::thread> threads;
  for (const int engine : {0, 1}) {
    threads.emplace_back([&, engine] {
      const IterationStats iteration = one_step();
      SchedulerStats scheduler;
      scheduler.prefix_cache_stats.record(10, 5, false);
      for (int i = 0; i < 5'000; ++i) {
        manager->record(&scheduler, &iteration, nullptr, engine);
        if (i % 100 == 0) manager->record(nullptr, nullptr, nullptr, 50 + i);
      }
    });
  }
  threads.emplace_back([&] {
    for (int i = 0; i < 500; ++i) {
      manager->log();
      manager->record_sleep_state({.sleep = i % 2, .level = 1});
    }
  });
  for (std::thread& thread : threads) thread.join();
  CHECK(of_engine0(around.page(), "vllm:prefix_cache_queries_total") ==
        "50000.0");
}

}  // namespace
}  // namespace vllm_metrics
