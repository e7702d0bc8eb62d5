#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <future>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "src/otlp/worker_thread.h"
#include "tests/loggers/surroundings.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"
#include "vllm_metrics/otlp/metrics_exporter.h"
#include "vllm_metrics/otlp/span_exporter.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics::otlp {
namespace {

// A collector that counts, or never answers until it is cancelled.
class Collector final : public Transport {
 public:
  explicit Collector(bool answers = true) : answers_(answers) {}
  Response send(const Request&) override {
    ++requests;
    if (answers_) return {.status = 200};
    reached_.set_value();
    cancelled_.get_future().wait();
    return {.may_have_arrived = true};
  }
  void cancel() noexcept override { cancelled_.set_value(); }
  void wait_until_reached() { reached_.get_future().wait(); }

  std::atomic<int> requests{0};

 private:
  const bool answers_;
  std::promise<void> reached_;
  std::promise<void> cancelled_;
};

Options to(std::shared_ptr<Transport> transport) {
  Options options;
  options.transport = std::move(transport);
  options.environment = [](const char*) -> const char* { return nullptr; };
  options.log_sink = std::make_shared<testing::CapturedLog>();
  return options;
}

TEST_CASE("MetricsExporter: a flush is an export, a shutdown the last",
          "[otlp]") {
  const auto collector = std::make_shared<Collector>();
  auto exporter = MetricsExporter::start(Registry::create(), to(collector));
  REQUIRE(exporter.ok());
  CHECK((*exporter)->flush());
  CHECK(collector->requests == 1);
  (*exporter)->shutdown();
  CHECK(collector->requests == 2);
  CHECK_FALSE((*exporter)->flush());
  (*exporter)->shutdown();
  CHECK(collector->requests == 2);
}

TEST_CASE(
    "MetricsExporter: a collector that hangs does not keep it from ending",
    "[otlp]") {
  const auto collector = std::make_shared<Collector>(/*answers=*/false);
  auto exporter = MetricsExporter::start(Registry::create(), to(collector));
  REQUIRE(exporter.ok());
  CHECK_FALSE((*exporter)->flush(0.0));
  collector->wait_until_reached();
  (*exporter)->shutdown(0.0);
  CHECK(collector->requests == 1);
}

TEST_CASE("WorkerThread: a job that throws was not well done, no more",
          "[otlp]") {
  const auto collector = std::make_shared<Collector>();
  WorkerThread thread(60.0, 1.0, collector);
  REQUIRE(thread.start([](double) -> bool { throw std::bad_alloc(); }));
  CHECK_FALSE(thread.run_now(60.0));
  CHECK_FALSE(thread.run_now(60.0));
  thread.stop(60.0);
}

TEST_CASE("WorkerThread: what waits has the job done before its time",
          "[otlp]") {
  const auto collector = std::make_shared<Collector>();
  WorkerThread thread(86'400.0, 1.0, collector);
  std::atomic<bool> full{false};
  std::promise<void> done;
  REQUIRE(thread.start(
      [&](double) {
        if (full.exchange(false)) done.set_value();
        return true;
      },
      [&] { return full.load(); }));
  full = true;
  done.get_future().wait();
  thread.stop(60.0);
}

TEST_CASE("WorkerThread: the interval is from begin to begin", "[otlp]") {
  using std::chrono::seconds;
  const std::chrono::steady_clock::time_point due(seconds(100));
  const auto next = [&](int now) {
    return next_begin(due, seconds(10), due + seconds(now)) - due;
  };
  CHECK(next(0) == seconds(10));
  CHECK(next(3) == seconds(10));
  CHECK(next(35) == seconds(45));
}

TEST_CASE("Exporters: a registry is pushed once", "[otlp]") {
  const auto collector = std::make_shared<Collector>();
  const auto registry = Registry::create();
  const auto first = MetricsExporter::start(registry, to(collector));
  REQUIRE(first.ok());
  CHECK(MetricsExporter::start(registry, to(collector)).status().code() ==
        absl::StatusCode::kAlreadyExists);
  CHECK(SpanExporter::start(registry, to(collector)).ok());
  CHECK(MetricsExporter::start(nullptr).status().code() ==
        absl::StatusCode::kInvalidArgument);
}

TEST_CASE("Exporters: switched off they start, and send nothing", "[otlp]") {
  const auto collector = std::make_shared<Collector>();
  Options options = to(collector);
  options.disabled = true;
  auto metrics = MetricsExporter::start(Registry::create(), options);
  auto spans = SpanExporter::start(Registry::create(), options);
  REQUIRE((metrics.ok() && spans.ok()));
  StatLoggerOptions engine;
  engine.model_name = "m";
  engine.max_model_len = 16;
  engine.default_loggers = false;
  engine.factories = {(*spans)->factory()};
  CHECK(StatLoggerManager::create(std::move(engine)).ok());
  CHECK_FALSE((*metrics)->flush());
  CHECK_FALSE((*spans)->flush());
  CHECK(collector->requests == 0);
}

TEST_CASE("Exporters: the child of a fork has none, and ends", "[otlp]") {
  const auto collector = std::make_shared<Collector>();
  auto exporter = MetricsExporter::start(Registry::create(), to(collector));
  REQUIRE(exporter.ok());
  CHECK((*exporter)->flush());
  const pid_t child = fork();
  if (child == 0) {
    const bool flushed = (*exporter)->flush();
    exporter->reset();
    _exit(flushed || collector->requests != 1 ? 1 : 0);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK((*exporter)->flush());
}

TEST_CASE("Exporters: steps, exports and ends of loggers overlap",
          "[otlp][concurrent]") {
  const auto collector = std::make_shared<Collector>();
  const auto registry = Registry::create();
  auto metrics = MetricsExporter::start(registry, to(collector));
  auto spans = SpanExporter::start(registry, to(collector));
  REQUIRE((metrics.ok() && spans.ok()));
  std::thread engine([&] {
    for (int life = 0; life < 3; ++life) {
      StatLoggerOptions options;
      options.model_name = "m";
      options.max_model_len = 1024;
      options.default_loggers = false;
      options.registry = registry;
      options.factories = {(*spans)->factory()};
      const auto manager = StatLoggerManager::create(std::move(options));
      IterationStats step;
      step.finished_requests.resize(4);
      for (int i = 0; i < 100; ++i) (*manager)->record(nullptr, &step);
    }
  });
  for (int i = 0; i < 20; ++i) {
    CHECK((*metrics)->flush());
    CHECK((*spans)->flush());
  }
  engine.join();
  CHECK((*spans)->flush());
}

}  // namespace
}  // namespace vllm_metrics::otlp
