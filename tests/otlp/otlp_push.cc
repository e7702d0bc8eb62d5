// Exports metrics and spans of some requests, for tests that decode them from
// outside:
//   otlp_push URL             over HTTP
//   otlp_push FOLDER [BYTES]  into FOLDER/metrics.jsonl and
//   FOLDER/traces.jsonl,
//                             which grow to BYTES
// prints the page as it was when it was exported, as OpenMetrics and then as
// text, and a line `taken 1 1`: metrics and spans. Everything else is told by
// OpenTelemetry's variables.

#include <cstdint>
#include <iostream>
#include <memory>
#include <span>
#include <string>

#include "vllm_metrics/exposition/open_metrics.h"
#include "vllm_metrics/exposition/text_format.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"
#include "vllm_metrics/otlp/metrics_exporter.h"
#include "vllm_metrics/otlp/span_exporter.h"
#include "vllm_metrics/registry/registry.h"

namespace {

using namespace vllm_metrics;

// Queued, prefilled and decoded, with a preemption unless it came with a
// context; the two clocks agree but for their origin.
void serve(StatLoggerManager& manager, double arrival, bool with_context) {
  constexpr double kEngineOrigin = 1.7e9;
  RequestStateStats request;
  request.arrival_time = arrival;
  request.num_prompt_tokens = 100;
  request.request_id = "cmpl-\"7\" \xe2\x82\xac";
  if (with_context)
    request.trace = *parse_traceparent(
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  const double begin = arrival - kEngineOrigin;
  const EngineCoreEvent events[] = {
      {EngineCoreEvent::Type::kQueued, begin},
      {EngineCoreEvent::Type::kScheduled, begin + 0.25}};
  IterationStats step;
  step.reset(arrival + 0.75);
  step.update_from_output({.num_new_tokens = 1, .events = events}, begin + 0.75,
                          request);
  manager.record(nullptr, &step);
  step.reset(arrival + 2.0);
  const EngineCoreEvent back[] = {
      {EngineCoreEvent::Type::kPreempted, begin + 1.0},
      {EngineCoreEvent::Type::kScheduled, begin + 1.25}};
  step.update_from_output(
      {.num_new_tokens = 9,
       .events = with_context ? std::span<const EngineCoreEvent>() : back},
      begin + 2.0, request);
  step.update_from_finished_request(FinishReason::kStop, request);
  manager.record(nullptr, &step);
}

otlp::Options options_for(const std::string& target, std::uint64_t max_bytes) {
  otlp::Options push;
  push.service_name = "test";
  push.gen_ai = otlp::GenAiMetrics{.operation = "chat"};
  if (target.starts_with("http")) {
    push.endpoint = target;
  } else {
    push.metrics_file = target + "/metrics.jsonl";
    push.traces_file = target + "/traces.jsonl";
    push.file_max_bytes = max_bytes;
  }
  return push;
}

int run(const otlp::Options& push) {
  const auto registry = Registry::create();
  auto metrics = otlp::MetricsExporter::start(registry, push);
  auto spans = otlp::SpanExporter::start(registry, push);
  if (!metrics.ok() || !spans.ok()) {
    std::cout << metrics.status() << '\n' << spans.status() << '\n';
    return 1;
  }
  StatLoggerOptions options;
  options.model_name = "tiny-1b";
  options.max_model_len = 4096;
  options.default_loggers = false;
  options.registry = registry;
  options.native_histograms = {{.family = "vllm:e2e_request_latency_seconds"}};
  options.exemplars = true;
  options.factories = {(*spans)->factory()};
  auto manager = StatLoggerManager::create(std::move(options));
  if (!manager.ok()) {
    std::cout << manager.status() << '\n';
    return 1;
  }
  for (int i = 0; i < 20; ++i) serve(**manager, 1.7e9 + i, i == 0);

  std::cout << OpenMetrics().render(*registry);
  std::cout << TextFormat().render(*registry) << std::flush;
  const bool metrics_taken = (*metrics)->flush(20.0);
  const bool spans_taken = (*spans)->flush(20.0);
  (*spans)->shutdown();
  std::cout << "taken " << metrics_taken << ' ' << spans_taken << std::endl;
  // What the last export tells is that of now: nothing is read after it.
  (*metrics)->shutdown(0.5);
  std::cerr << TextFormat().render(*registry);
  return 0;
}

struct Static {
  ~Static() {
    if (exporter != nullptr) exporter->shutdown(0.1);
  }
  std::unique_ptr<otlp::MetricsExporter> exporter;
};

int leave_running(const otlp::Options& push) {
  static Static all;
  auto exporter = otlp::MetricsExporter::start(Registry::create(), push);
  if (!exporter.ok()) return 1;
  all.exporter = *std::move(exporter);
  return all.exporter->flush(0.2) ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  if (argc > 2 && std::string(argv[2]) == "at_exit")
    return leave_running(options_for(argv[1], 0));
  return run(options_for(argv[1], argc > 2 ? std::stoull(argv[2]) : 0));
}
