#pragma once

// The library as an engine embeds it, and prometheus-cpp given the same job.

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "step_data.h"
#include "vllm_metrics/loggers/options.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"
#include "vllm_metrics/registry/schema.h"

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
class Registry;
}  // namespace prometheus

namespace vllm_metrics::bench {

// Engines 0 to `engines` - 1 with the Prometheus logger only.
StatLoggerOptions prometheus_only(std::size_t engines);

// The same with every feature that has families, and self-metrics.
StatLoggerOptions with_every_feature(std::size_t engines);

// Ends the program when the options are refused.
std::unique_ptr<StatLoggerManager> make_manager(StatLoggerOptions options);

inline void record(StatLoggerManager& manager, const Step& step,
                   std::size_t engine = 0) {
  manager.record(&step.scheduler, &step.iteration, nullptr,
                 static_cast<int>(engine));
}

// The page of a registry's schema, once more, by prometheus-cpp: the same
// families, label sets and bounds, every metric looked up before the loop.
class PrometheusCppPage {
 public:
  PrometheusCppPage(const Schema& schema, std::size_t engines);
  ~PrometheusCppPage();

  // One Observe() for each value.
  void record(const FlatStep& step, std::size_t engine = 0);

  // Latencies counted into buckets first, then one ObserveMultiple().
  void record_batched(const FlatStep& step, std::size_t engine = 0);

  std::string text() const;

 private:
  struct Metrics;  // by name, in the order of the page
  struct Engine {
    std::vector<prometheus::Gauge*> gauges;
    std::vector<prometheus::Counter*> counters;
    std::vector<prometheus::Counter*> success;
    prometheus::Histogram* step_tokens;
    prometheus::Histogram* first_tokens;
    prometheus::Histogram* latencies;
    std::vector<prometheus::Histogram*> requests;
  };

  static void record_scalars(const FlatStep& step, Engine& engine);

  std::shared_ptr<prometheus::Registry> registry_;
  std::vector<Engine> engines_;
  std::vector<double> first_token_bounds_;
  std::vector<double> latency_bounds_;
  std::vector<double> increments_;
};

}  // namespace vllm_metrics::bench
