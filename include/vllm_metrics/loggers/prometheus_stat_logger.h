#pragma once

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "vllm_metrics/export.h"
#include "vllm_metrics/loggers/options.h"
#include "vllm_metrics/loggers/stat_logger.h"

namespace vllm_metrics::inline v0 {

// Puts vLLM's families on a registry's page: one logger, one bank of cells for
// each engine index. The manager makes one; make your own to derive from it.
//
// Thread-safety: record() of one engine index at a time (the manager's lock
// sees to it), of different indexes at once. A scrape never makes it wait.
// Errors: create() and prepare() return InvalidArgument for an option that is
// not allowed and AlreadyExists when the registry has these series. record()
// returns nothing: what it cannot take is counted on the page.
// Memory: about 10 KiB of cells for each engine; record() allocates nothing.
// Definition: vLLM PrometheusStatLogger. vLLM v1/metrics/loggers.py.
class VLLM_METRICS_EXPORT PrometheusStatLogger : public StatLoggerBase {
 public:
  struct State;  // the banks and their place on the page

  // options.registry must be set. The families are on the page, all zero, from
  // here until the logger is destroyed.
  static absl::StatusOr<std::unique_ptr<PrometheusStatLogger>> create(
      const StatLoggerOptions& options);

  // For subclasses: what create() checks and registers, for the constructor.
  static absl::StatusOr<std::shared_ptr<State>> prepare(
      const StatLoggerOptions& options);
  explicit PrometheusStatLogger(std::shared_ptr<State> state) noexcept;
  ~PrometheusStatLogger() override;

  std::string_view name() const override { return "prometheus"; }
  void record(const StepRecord& step) override;
  void log_engine_initialized() override;
  void record_sleep_state(const SleepState& state) override;
  bool exposes_catalogue() const override { return true; }
  void record_admission_rejection(AdmissionLimit limit) override;
  void record_operation(EngineOperation operation, double seconds) override;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace vllm_metrics::inline v0
