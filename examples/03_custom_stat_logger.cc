// How do I send the statistics somewhere new?
//
// A whole stat logger: one JSON line for each engine and log interval. It does
// in record() what fits between two forward passes, adding to numbers and
// vectors that keep their storage, and the slow part in log().

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <mutex>
#include <ostream>
#include <string_view>
#include <utility>
#include <vector>

#include "vllm_metrics/loggers/stat_logger_manager.h"

namespace {

using namespace vllm_metrics;

class JsonLinesLogger : public StatLoggerBase {
 public:
  // [factory]
  // For StatLoggerOptions::factories. `out` must outlive the manager.
  static StatLoggerFactory factory(std::ostream& out) {
    return PerEngineStatLoggerFactory(
        [&out](const StatLoggerOptions& options, int engine_index)
            -> absl::StatusOr<std::unique_ptr<StatLoggerBase>> {
          return std::make_unique<JsonLinesLogger>(out, options, engine_index);
        });
  }
  // [/factory]

  JsonLinesLogger(std::ostream& out, const StatLoggerOptions& options,
                  int engine_index)
      : out_(out), clock_(options.clock), engine_index_(engine_index) {}

  std::string_view name() const override { return "json_lines"; }

  // [record]
  // On the engine's thread: no file, no socket, no allocation once the vectors
  // have grown.
  void record(const StepRecord& step) override {
    if (step.iteration == nullptr) return;
    const std::lock_guard lock(mutex_);
    filling_.tokens += step.iteration->num_generation_tokens;
    for (const auto& request : step.iteration->finished_requests) {
      filling_.latencies.push_back(request.e2e_latency);
    }
  }
  // [/record]

  // [log]
  // On the thread that calls the manager's log().
  void log() override {
    {
      const std::lock_guard lock(mutex_);
      std::swap(filling_, writing_);
    }
    out_ << "{\"time\":" << static_cast<std::int64_t>(clock_->wall())
         << ",\"engine\":" << engine_index_ << ",\"tokens\":" << writing_.tokens
         << ",\"finished\":" << writing_.latencies.size()
         << ",\"p50_latency\":" << writing_.median_latency() << "}\n";
    writing_.clear();
  }
  // [/log]

 private:
  struct Interval {
    std::int64_t tokens = 0;
    std::vector<double> latencies;  // seconds, of requests that finished

    double median_latency() {
      if (latencies.empty()) return 0.0;
      const auto middle = latencies.begin() + std::ssize(latencies) / 2;
      std::ranges::nth_element(latencies, middle);
      return *middle;
    }
    void clear() {
      tokens = 0;
      latencies.clear();  // keeps its storage
    }
  };

  std::ostream& out_;
  const std::shared_ptr<const Clock> clock_;
  const int engine_index_;
  Interval writing_;  // log()'s own
  std::mutex mutex_;
  Interval filling_;  // under mutex_: log() may overlap record()
};

// A step in which one request ended, `latency` seconds after it arrived.
IterationStats step_of(double latency) {
  IterationStats iteration{.num_generation_tokens = 8};
  iteration.finished_requests.push_back({.e2e_latency = latency});
  return iteration;
}

}  // namespace

int main() {
  // [options]
  StatLoggerOptions options;
  options.model_name = "tiny-1b";
  options.max_model_len = 4096;
  options.engine_indexes = {0, 1};
  options.factories = {JsonLinesLogger::factory(std::cout)};
  options.default_loggers = false;  // no text records beside it
  // [/options]
  const auto manager = StatLoggerManager::create(std::move(options));
  if (!manager.ok()) {
    std::cerr << manager.status() << '\n';
    return 1;
  }
  for (const double latency : {0.5, 2.0, 0.25}) {
    const IterationStats iteration = step_of(latency);
    (*manager)->record(nullptr, &iteration, nullptr, /*engine_index=*/0);
  }
  const IterationStats iteration = step_of(4.0);
  (*manager)->record(nullptr, &iteration, nullptr, /*engine_index=*/1);
  (*manager)->log();
}
