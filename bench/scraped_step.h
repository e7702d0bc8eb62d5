#pragma once

#include <cstddef>
#include <vector>

#include "step_data.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"

namespace vllm_metrics::bench {

// One engine's steps, each timed by itself with 5 us of other work between
// two, while another thread idles or scrapes without pause.
struct ScrapedStep {
  double idle_p50 = 0.0;  // nanoseconds
  double idle_p99 = 0.0;
  double scraped_p50 = 0.0;
  double scraped_p99 = 0.0;
  double scrapes_per_second = 0.0;
};

// Nanoseconds of each of `count` steps, with the gaps between them.
std::vector<double> time_steps(StatLoggerManager& manager,
                               const std::vector<Step>& steps,
                               std::size_t count);

// One round of each.
ScrapedStep time_scraped_step(std::size_t steps);

// Nanoseconds a step takes when `threads` record at once, steps of one engine
// or of an engine each; ends the program if a step was lost.
double time_concurrent_steps(std::size_t threads, bool one_engine,
                             std::size_t steps);

}  // namespace vllm_metrics::bench
