// How do I put metrics of my own on the page?
//
// Three ways, from the simplest: handles of a registry for what happens outside
// the step loop, step metrics for what must agree with vLLM's within every
// scrape, and primitives alone for a program that has no page of ours.

#include <array>
#include <cstddef>
#include <iostream>
#include <string>
#include <string_view>

#include "vllm_metrics/exposition/text_format.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"
#include "vllm_metrics/primitives/counter.h"
#include "vllm_metrics/primitives/histogram.h"
#include "vllm_metrics/registry/registry.h"

namespace {

using namespace vllm_metrics;

// [registry]
// The front end's own metrics. The series leave the page with the last copy of
// their handle.
struct FrontEndMetrics {
  Handle<Counter> connections;
  Handle<Histogram> tokenize_seconds;

  static absl::StatusOr<FrontEndMetrics> create(Registry& registry) {
    auto connections = registry.add_counter(
        {.name = "acme_connections", .help = "Connections accepted."},
        {{"protocol", "grpc"}});
    if (!connections.ok()) return connections.status();
    constexpr std::array kBounds = {0.001, 0.01, 0.1};  // seconds
    auto tokenize_seconds =
        registry.add_histogram({.name = "acme_tokenize_seconds",
                                .help = "Time to tokenize one prompt.",
                                .kind = MetricKind::kHistogram},
                               kBounds);
    if (!tokenize_seconds.ok()) return tokenize_seconds.status();
    return FrontEndMetrics{*connections, *tokenize_seconds};
  }
};
// [/registry]

// [step_metrics]
// Written together with the step, so that in every scrape
// acme_batch_slots >= vllm:num_requests_running.
enum OwnMetric : std::size_t { kBatchSlots, kPaddedTokens };

StepMetrics own_step_metrics(const int& batch_slots) {
  return {
      .metrics = {{.family = {.name = "acme_batch_slots",
                              .help = "Requests the batch has room for.",
                              .kind = MetricKind::kGauge}},
                  {.family = {.name = "acme_padded_tokens",
                              .help = "Tokens computed for nothing.",
                              .kind = MetricKind::kCounter}}},
      .write =
          [&batch_slots](const StepRecord& step, StepWriter& writer) {
            writer.set(kBatchSlots, batch_slots);
            if (step.scheduler == nullptr) return;
            writer.inc(kPaddedTokens,
                       batch_slots - step.scheduler->num_running_reqs);
          },
  };
}
// [/step_metrics]

// [standalone]
// Header-only: no registry, nothing to link. Any thread may write.
double mean_of_three_waits() {
  constexpr std::array kBounds = {0.01, 0.1, 1.0};
  Histogram waits(*BucketBounds::create(kBounds));
  Counter errors;
  waits.observe(0.05);
  waits.observe(0.35, 2);  // the same value twice
  errors.inc();

  Histogram::Snapshot now;
  waits.snapshot(now);
  return now.sum / static_cast<double>(now.count);
}
// [/standalone]

void print_own(std::string_view page) {
  for (std::size_t at = 0; at < page.size();) {
    const std::size_t end = page.find('\n', at);
    const std::string_view line = page.substr(at, end - at);
    if (line.find("acme_") != std::string_view::npos) std::cout << line << '\n';
    at = end + 1;
  }
}

}  // namespace

int main() {
  const int batch_slots = 8;
  StatLoggerOptions options;
  options.model_name = "tiny-1b";
  options.max_model_len = 4096;
  options.step_metrics = own_step_metrics(batch_slots);
  const auto manager = StatLoggerManager::create(options);
  if (!manager.ok()) {
    std::cerr << manager.status() << '\n';
    return 1;
  }
  const auto metrics = FrontEndMetrics::create(*(*manager)->registry());
  if (!metrics.ok()) {
    std::cerr << metrics.status() << '\n';
    return 1;
  }

  metrics->connections->inc();
  metrics->tokenize_seconds->observe(0.004);
  const SchedulerStats scheduler{.num_running_reqs = 6};
  (*manager)->record(&scheduler, nullptr);
  print_own(TextFormat().render(*(*manager)->registry()));
  std::cout << "mean wait " << mean_of_three_waits() << " s\n";
}
