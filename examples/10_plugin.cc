// How do operators add a stat logger to an engine that they did not build?
//
// A whole plugin. Built as a shared object, it is loaded by every engine that
// runs with VLLM_METRICS_PLUGINS=<path of it>, or names it in
// StatLoggerOptions::plugins.

#include <cstdint>
#include <iostream>
#include <memory>
#include <string_view>

#include "vllm_metrics/loggers/plugin.h"

namespace {

using namespace vllm_metrics;

// Tells, when its engine goes, how much it did.
class AcmeStatLogger : public StatLoggerBase {
 public:
  explicit AcmeStatLogger(int engine_index) : engine_index_(engine_index) {}
  ~AcmeStatLogger() override {
    std::cout << "acme: engine " << engine_index_ << " generated " << tokens_
              << " tokens in " << steps_ << " steps\n";
  }

  std::string_view name() const override { return "acme"; }
  void record(const StepRecord& step) override {
    ++steps_;
    if (step.iteration != nullptr)
      tokens_ += step.iteration->num_generation_tokens;
  }

 private:
  const int engine_index_;
  std::int64_t steps_ = 0;
  std::int64_t tokens_ = 0;
};

// [plugin]
StatLoggerFactory acme_stat_loggers() {
  return PerEngineStatLoggerFactory(
      [](const StatLoggerOptions&,
         int engine_index) -> absl::StatusOr<std::unique_ptr<StatLoggerBase>> {
        return std::make_unique<AcmeStatLogger>(engine_index);
      });
}

}  // namespace

extern "C" __attribute__((visibility("default")))
const vllm_metrics::StatLoggerPlugin*
vllm_stat_logger_plugin() {
  static constexpr StatLoggerPlugin kPlugin{.name = "acme",
                                            .factory = acme_stat_loggers};
  return &kPlugin;
}
// [/plugin]
