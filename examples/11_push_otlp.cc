// How do I push metrics to an OpenTelemetry collector?
//
// A thread of the exporter reads the registry each interval and posts it. Here
// a collector in this process takes it, so that the example ends by itself;
// leave the transport out to send over HTTP.

#include <cstddef>
#include <iostream>
#include <memory>
#include <utility>

#include "vllm_metrics/loggers/stat_logger_manager.h"
#include "vllm_metrics/otlp/metrics_exporter.h"

namespace {

using namespace vllm_metrics;

// Says yes to everything, and how much it was.
class Collector final : public otlp::Transport {
 public:
  otlp::Response send(const otlp::Request& request) override {
    bytes += request.body.size();
    return {.status = 200};
  }
  std::size_t bytes = 0;
};

}  // namespace

int main() {
  StatLoggerOptions options;
  options.model_name = "tiny-1b";
  options.max_model_len = 4096;
  options.default_loggers = false;
  const auto manager = StatLoggerManager::create(std::move(options));
  if (!manager.ok()) {
    std::cerr << manager.status() << '\n';
    return 1;
  }

  const auto collector = std::make_shared<Collector>();
  // [exporter]
  otlp::Options push;
  push.endpoint = "http://localhost:4318";  // or OTEL_EXPORTER_OTLP_ENDPOINT
  push.service_name = "tiny-1b-server";     // or OTEL_SERVICE_NAME
  push.export_interval = 15.0;              // seconds
  push.transport = collector;               // leave out to send over HTTP
  auto exporter = otlp::MetricsExporter::start((*manager)->registry(), push);
  if (!exporter.ok()) {
    std::cerr << exporter.status() << '\n';
    return 1;
  }
  // [/exporter]

  const IterationStats step{.num_generation_tokens = 8};
  (*manager)->record(nullptr, &step);
  const bool taken = (*exporter)->flush();
  (*exporter)->shutdown();
  std::cout << "taken: " << taken << ", bytes: " << collector->bytes << '\n';
  return taken && collector->bytes > 0 ? 0 : 1;
}
