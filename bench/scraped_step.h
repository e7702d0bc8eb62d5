#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "step_data.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"

namespace vllm_metrics::bench {

// Nanoseconds of each of `count` steps of the first engine of `manager`, with
// 5 us of other work between two.
std::vector<double> time_steps(StatLoggerManager& manager,
                               const std::vector<Step>& steps,
                               std::size_t count);

// One engine's steps, each timed by itself with 5 us of other work between
// two, while another thread idles or scrapes without pause.
struct ScrapedStep {
  double idle_p50 = 0.0;  // nanoseconds
  double idle_p99 = 0.0;
  double scraped_p50 = 0.0;
  double scraped_p99 = 0.0;
  double scrapes_per_second = 0.0;
};

// One round of each, of the first engine of `manager`; the other thread calls
// `scrape`.
ScrapedStep time_disturbed_step(StatLoggerManager& manager, std::size_t steps,
                                std::function<void()> scrape);

// Disturbed by rendering the page.
ScrapedStep time_scraped_step(std::size_t steps);

// Nanoseconds a step takes when `threads` record at once, steps of one engine
// or of an engine each; ends the program if a step was lost.
double time_concurrent_steps(std::size_t threads, bool one_engine,
                             std::size_t steps);

}  // namespace vllm_metrics::bench
