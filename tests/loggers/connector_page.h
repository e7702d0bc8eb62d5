#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/loggers/surroundings.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"

namespace vllm_metrics::testing {

// Engines 0 and 1 with a KV connector, their page and their text record.
class ConnectedEngines : public Surroundings {
 public:
  explicit ConnectedEngines(std::shared_ptr<const KvConnectorMetrics> connector,
                            bool aggregated = false) {
    StatLoggerOptions given = options();
    given.engine_indexes = {0, 1};
    given.aggregate_engine_logging = aggregated;
    given.kv_connector = std::move(connector);
    manager_ = *StatLoggerManager::create(std::move(given));
  }

  void record(const KvConnectorStats& stats, int engine = 0) {
    SchedulerStats scheduler;
    scheduler.kv_connector_stats = &stats;
    manager_->record(&scheduler, nullptr, nullptr, engine);
  }

  // What the next log() says of transfers, without its name.
  std::vector<std::string> logged() {
    clock->advance(10);
    log->lines.clear();
    manager_->log();
    std::vector<std::string> texts;
    const std::string mark = "KV Transfer metrics: ";
    for (const std::string& line : log->lines) {
      const std::size_t at = line.find(mark);
      if (at != line.npos) texts.push_back(line.substr(at + mark.size()));
    }
    return texts;
  }

 private:
  std::unique_ptr<StatLoggerManager> manager_;
};

inline std::vector<std::string> one(std::string text) {
  return {std::move(text)};
}

}  // namespace vllm_metrics::testing
