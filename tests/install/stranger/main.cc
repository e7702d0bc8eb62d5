// One step of an engine, and the page that a scrape would see.
#include <cstdio>
#include <string_view>
#include <utility>

#include "vllm_metrics/exposition/text_format.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"
#include "vllm_metrics/version.h"

int main() {
  vllm_metrics::StatLoggerOptions options;
  options.model_name = "stranger";
  options.max_model_len = 4096;
  auto manager = vllm_metrics::StatLoggerManager::create(std::move(options));
  if (!manager.ok()) {
    std::puts(manager.status().ToString().c_str());
    return 1;
  }

  vllm_metrics::SchedulerStats scheduler;
  scheduler.num_running_reqs = 3;
  (*manager)->record(&scheduler, nullptr);

  vllm_metrics::TextFormat format;
  const std::string_view page = format.render(*(*manager)->registry());
  std::fwrite(page.data(), 1, page.size(), stdout);
  const bool recorded = page.find(
                            "vllm:num_requests_running{engine=\"0\","
                            "model_name=\"stranger\"} 3.0\n") != page.npos;
  const bool same_version = vllm_metrics::version() == VLLM_METRICS_VERSION;
  return recorded && same_version ? 0 : 1;
}
