// How do I get a trace of each request?
//
// The engine keeps the trace context that a request came with; when it ends,
// its span goes to an OpenTelemetry collector, with queue, prefill and decode
// under it. Here a collector in this process takes them; leave the transport
// out to send over HTTP.

#include <cstddef>
#include <iostream>
#include <memory>
#include <utility>

#include "vllm_metrics/loggers/stat_logger_manager.h"
#include "vllm_metrics/otlp/span_exporter.h"
#include "vllm_metrics/registry/registry.h"

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
  const auto registry = Registry::create();
  const auto collector = std::make_shared<Collector>();
  otlp::Options push;
  push.service_name = "tiny-1b-server";
  push.transport = collector;
  auto spans = otlp::SpanExporter::start(registry, push);
  if (!spans.ok()) {
    std::cerr << spans.status() << '\n';
    return 1;
  }

  StatLoggerOptions options;
  options.model_name = "tiny-1b";
  options.max_model_len = 4096;
  options.registry = registry;
  options.factories = {(*spans)->factory()};
  options.default_loggers = false;
  const auto manager = StatLoggerManager::create(std::move(options));
  if (!manager.ok()) {
    std::cerr << manager.status() << '\n';
    return 1;
  }

  RequestStateStats request;
  request.arrival_time = 1'700'000'000.0;
  request.num_prompt_tokens = 32;
  // [context]
  const auto context = parse_traceparent(
      "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  if (context) request.trace = *context;
  request.request_id = "cmpl-7";  // an attribute of its span
  // [/context]

  IterationStats step;
  step.reset(1'700'000'000.5);
  step.update_from_output({.num_new_tokens = 1}, 0.5, request);
  step.update_from_finished_request(FinishReason::kStop, request);
  (*manager)->record(nullptr, &step);
  const bool taken = (*spans)->flush();
  std::cout << "taken: " << taken << '\n';
  return taken && collector->bytes > 0 ? 0 : 1;
}
