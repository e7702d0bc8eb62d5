// With a collector that takes connections and never answers: steps go on,
// memory stays what it was, and each span that is lost is counted.

#include <arpa/inet.h>
#include <malloc.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "tests/loggers/surroundings.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"
#include "vllm_metrics/otlp/metrics_exporter.h"
#include "vllm_metrics/otlp/span_exporter.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics::otlp {
namespace {

// The system takes connections and their first bytes by itself.
class SilentReceiver {
 public:
  SilentReceiver() : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    auto* const address = reinterpret_cast<sockaddr*>(&at);
    REQUIRE(bind(fd_, address, size) == 0);
    REQUIRE(listen(fd_, 64) == 0);
    REQUIRE(getsockname(fd_, address, &size) == 0);
    url = "http://127.0.0.1:" + std::to_string(ntohs(at.sin_port));
  }
  ~SilentReceiver() { close(fd_); }
  SilentReceiver(const SilentReceiver&) = delete;
  SilentReceiver& operator=(const SilentReceiver&) = delete;

  std::string url;

 private:
  int fd_;
};

Options to(const std::string& url) {
  Options options;
  options.endpoint = url;
  options.environment = [](const char*) -> const char* { return nullptr; };
  return options;
}

std::unique_ptr<StatLoggerManager> make_engine(
    const std::shared_ptr<Registry>& registry, SpanExporter& spans) {
  StatLoggerOptions options;
  options.model_name = "m";
  options.max_model_len = 1024;
  options.registry = registry;
  options.default_loggers = false;
  options.factories = {spans.factory()};
  auto manager = StatLoggerManager::create(std::move(options));
  REQUIRE(manager.ok());
  return *std::move(manager);
}

// A step in which three requests end, of four, two and three spans.
IterationStats step_of_nine_spans() {
  IterationStats step;
  step.iteration_timestamp = 1.7e9;
  step.finished_requests = {{.first_token_latency = 0.5},
                            {.prefill_time = {}, .decode_time = {}},
                            {.queued_time = {}, .first_token_latency = 0.5}};
  return step;
}

std::uint64_t total(const Registry& registry, const std::string& series) {
  // Large ones are `2.7e+07`.
  return static_cast<std::uint64_t>(std::stod(
      testing::value(std::string(TextFormat().render(registry)), series)));
}

// Bytes; 0 under the sanitizers, which have an allocator of their own.
std::int64_t heap_size() {
  return static_cast<std::int64_t>(mallinfo2().uordblks);
}

TEST_CASE("Exporters: what a receiver that never answers loses is counted",
          "[otlp][concurrent][blocked]") {
  const bool soak = std::getenv("VLLM_METRICS_SOAK") != nullptr;
  const SilentReceiver receiver;
  const auto registry = Registry::create();
  Options push = to(receiver.url);
  push.timeout = soak ? 1.0 : 0.02;
  push.export_interval = push.span_delay = push.timeout;
  push.export_timeout = push.span_export_timeout = soak ? 5.0 : 0.04;
  push.temporality = Temporality::kDelta;
  push.span_queue = 64;
  auto metrics = MetricsExporter::start(registry, push);
  auto spans = SpanExporter::start(registry, push);
  REQUIRE((metrics.ok() && spans.ok()));
  const auto engine = make_engine(registry, **spans);

  const auto exports = [&](const char* signal) {
    return total(*registry,
                 std::string("vllm_metrics_otlp_exports_total{outcome="
                             "\"unknown\",signal=\"") +
                     signal + "\"}");
  };
  const IterationStats step = step_of_nine_spans();
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::seconds(soak ? 60 : 0);
  std::uint64_t steps = 0;
  std::int64_t heap = 0;
  while (exports("traces") < 4 || exports("metrics") < 4 ||
         std::chrono::steady_clock::now() < end) {
    for (int i = 0; i < 100; ++i) engine->record(nullptr, &step);
    steps += 100;
    if (heap == 0 && exports("traces") > 0 && exports("metrics") > 0)
      heap = heap_size();
  }
  CHECK(heap_size() - heap < 1 << 20);
  (*spans)->shutdown(0.0);
  (*metrics)->shutdown(0.0);
  for (int i = 0; i < 10; ++i) engine->record(nullptr, &step);

  const std::string lost =
      "vllm_metrics_otlp_lost_items_total{reason=\"%\",signal=\"traces\"}";
  std::uint64_t all_lost = 0;
  for (const char* reason : {"rejected", "not_delivered", "queue_full"}) {
    std::string series = lost;
    all_lost += total(*registry, series.replace(series.find('%'), 1, reason));
  }
  CHECK(all_lost == (steps + 10) * 9);
}

TEST_CASE("Exporters: two threads may end one, the shorter timeout counts",
          "[otlp][concurrent]") {
  const SilentReceiver receiver;
  const auto registry = Registry::create();
  Options push = to(receiver.url);
  push.timeout = push.span_export_timeout = push.export_timeout = 3600.0;
  auto metrics = MetricsExporter::start(registry, push);
  auto spans = SpanExporter::start(registry, push);
  REQUIRE((metrics.ok() && spans.ok()));
  const auto engine = make_engine(registry, **spans);
  const IterationStats step = step_of_nine_spans();
  engine->record(nullptr, &step);
  CHECK_FALSE((*metrics)->flush(0.01));
  CHECK_FALSE((*spans)->flush(0.01));

  std::thread patient([&] {
    (*metrics)->shutdown(3600.0);
    (*spans)->shutdown(3600.0);
  });
  std::thread flushing([&] {
    while ((*metrics)->flush(0.001) || (*spans)->flush(0.001)) {
    }
  });
  (*spans)->shutdown(0.0);
  (*metrics)->shutdown(0.02);
  patient.join();
  flushing.join();
  CHECK_FALSE((*metrics)->flush(3600.0));
  (*metrics)->shutdown(3600.0);
  CHECK(total(*registry,
              "vllm_metrics_otlp_lost_items_total{reason=\"not_delivered\","
              "signal=\"traces\"}") == 9);
}

TEST_CASE("Exporters: a timeout that is no number is none", "[otlp]") {
  const SilentReceiver receiver;
  auto exporter = MetricsExporter::start(Registry::create(), to(receiver.url));
  REQUIRE(exporter.ok());
  CHECK_FALSE((*exporter)->flush(std::nan("")));
  CHECK_FALSE((*exporter)->flush(-1e300));
  (*exporter)->shutdown(std::nan(""));
}

}  // namespace
}  // namespace vllm_metrics::otlp
