// How do several data-parallel engines share one page and one log line?
//
// One manager, told of every engine index. Each engine's thread records its own
// steps; they do not wait for each other, nor for the thread that logs.

#include <cstddef>
#include <iostream>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "vllm_metrics/exposition/text_format.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"

namespace {

using namespace vllm_metrics;

constexpr int kEngines = 4;
constexpr int kSteps = 1000;

// [engine]
void run_engine(StatLoggerManager& manager, int engine_index) {
  // Of this thread alone, and kept from step to step.
  SchedulerStats scheduler;
  IterationStats iteration;
  for (int step = 0; step < kSteps; ++step) {
    // ... schedule, forward pass ...
    scheduler.num_running_reqs = 8 + engine_index;
    scheduler.kv_cache_usage = 0.1 * (1 + engine_index);
    iteration.reset(1700000000.0 + 0.02 * step);
    iteration.num_generation_tokens = scheduler.num_running_reqs;
    manager.record(&scheduler, &iteration, nullptr, engine_index);
  }
}
// [/engine]

void print_samples(std::string_view page, std::string_view family) {
  for (std::size_t at = 0; at < page.size();) {
    const std::size_t end = page.find('\n', at);
    const std::string_view line = page.substr(at, end - at);
    if (line.starts_with(family)) std::cout << line << '\n';
    at = end + 1;
  }
}

}  // namespace

int main() {
  // [options]
  StatLoggerOptions options;
  options.model_name = "tiny-1b";
  options.max_model_len = 4096;
  options.engine_indexes = {0, 1, 2, 3};
  options.aggregate_engine_logging = true;  // one record for all four
  // [/options]
  const auto manager = StatLoggerManager::create(std::move(options));
  if (!manager.ok()) {
    std::cerr << manager.status() << '\n';
    return 1;
  }

  {
    std::vector<std::jthread> engines;
    engines.reserve(kEngines);
    for (int index = 0; index < kEngines; ++index) {
      engines.emplace_back([&manager, index] { run_engine(**manager, index); });
    }
  }  // joins: no thread calls the manager any more

  (*manager)->log();
  TextFormat format;
  print_samples(format.render(*(*manager)->registry()),
                "vllm:generation_tokens_total{");
}
