#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "vllm_metrics/export.h"
#include "vllm_metrics/loggers/options.h"
#include "vllm_metrics/loggers/stat_logger.h"

namespace vllm_metrics::inline v0 {

// Makes one logger per engine index look like one logger: each step goes to the
// logger of its engine, log() to all of them in the order of the index list.
//
// Thread-safety: as the loggers inside; steps of different engines at once.
// Errors: create() passes on what the factory returned, with the engine index.
// Sleep-state calls are not forwarded, as in vLLM.
// Definition: vLLM PerEngineStatLoggerAdapter.
class VLLM_METRICS_EXPORT PerEngineStatLoggerAdapter : public StatLoggerBase {
 public:
  // Told of each exception a logger inside throws, with its text. Any thread.
  using ErrorHandler = std::function<void(std::string_view what)>;

  // With `on_error` the other loggers go on when one throws; without, the
  // exception leaves the adapter.
  static absl::StatusOr<std::unique_ptr<PerEngineStatLoggerAdapter>> create(
      const StatLoggerOptions& options,
      const PerEngineStatLoggerFactory& factory, ErrorHandler on_error = {});
  ~PerEngineStatLoggerAdapter() override;

  // The name of the loggers inside.
  std::string_view name() const override;
  void record(const StepRecord& step) override;
  void log() override;
  void log_engine_initialized() override;

 private:
  struct State;
  explicit PerEngineStatLoggerAdapter(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace vllm_metrics::inline v0
