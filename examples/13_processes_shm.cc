// One page for several processes: each records into memory they share, and any
// of them shows the sum.
//
// Each process opens the same folder, or is forked from one that has. Here two
// front ends are forked; the parent serves the page of all.

#include <sys/wait.h>
#include <unistd.h>

#include <iostream>
#include <memory>
#include <string>

#include "vllm_metrics/exposition/text_format.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"
#include "vllm_metrics/registry/registry.h"
#include "vllm_metrics/shm/shared_registry.h"

int main() {
  using namespace vllm_metrics;  // NOLINT: an example

  // [open]
  // The folder: $PROMETHEUS_MULTIPROC_DIR, or a fresh one in memory.
  auto shared = shm::SharedRegistry::create();
  if (!shared.ok()) {
    std::cerr << shared.status() << '\n';  // e.g. not writable, no room
    return 1;
  }
  StatLoggerOptions options;
  options.model_name = "acme/test-7b";
  options.max_model_len = 4096;
  options.registry = (*shared)->registry();
  auto manager = StatLoggerManager::create(std::move(options));
  // [/open]
  if (!manager.ok()) {
    std::cerr << manager.status() << '\n';
    return 1;
  }

  for (int front_end = 0; front_end < 2; ++front_end) {
    if (::fork() != 0) continue;
    // A child has a segment of its own, behind the same manager.
    IterationStats step;
    step.num_generation_tokens = 100 * (front_end + 1);
    (*manager)->record(nullptr, &step);
    ::_exit(0);
  }
  while (::wait(nullptr) > 0) {
  }

  // Both have ended; what they counted has not.
  const std::string page(TextFormat().render(*(*shared)->registry()));
  const auto line = page.find("\nvllm:generation_tokens_total") + 1;
  std::cout << page.substr(line, page.find('\n', line) - line) << '\n';
}
