// What is the least an engine has to do?
//
// Make a manager, record() each step, log() each interval. Everything else is
// about what goes into a step (02_step_loop.cc) and who reads the page.

// [program]
#include <iostream>

#include "vllm_metrics/exposition/text_format.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"

int main() {
  const auto metrics = *vllm_metrics::StatLoggerManager::create(
      {.model_name = "tiny-1b", .max_model_len = 4096});
  vllm_metrics::SchedulerStats scheduler{.num_running_reqs = 32};
  vllm_metrics::IterationStats iteration{.num_generation_tokens = 32};
  iteration.inter_token_latencies_iter.assign(32, 0.021);  // seconds
  for (int i = 0; i < 3; ++i) metrics->record(&scheduler, &iteration);
  metrics->log();
  std::cout << vllm_metrics::TextFormat().render(*metrics->registry());
}
// [/program]
