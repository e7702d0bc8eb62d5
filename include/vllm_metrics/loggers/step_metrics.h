#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vllm_metrics/catalogue/metric_spec.h"
#include "vllm_metrics/export.h"
#include "vllm_metrics/primitives/native_buckets.h"
#include "vllm_metrics/registry/family.h"
#include "vllm_metrics/registry/labels.h"
#include "vllm_metrics/stats/step_record.h"

namespace vllm_metrics::inline v0 {

// Writes one step's values of StepMetrics. `metric` is the index into
// StepMetrics::metrics; its kind decides which member fits. A call that does
// not fit (index, kind, a fraction for an integer counter), a negative
// increment and a value that is not finite change nothing and are counted in
// `vllm_metrics_rejected_samples_total`; a negative observation counts as 0.
class VLLM_METRICS_EXPORT StepWriter {
 public:
  StepWriter(const StepWriter&) = delete;
  StepWriter& operator=(const StepWriter&) = delete;

  template <std::integral Count = int>
  void inc(std::size_t metric, Count n = 1) noexcept {
    inc_integer(metric, static_cast<std::int64_t>(n));
  }
  void inc(std::size_t metric, double v) noexcept;  // CounterNumber::kReal
  void set(std::size_t metric, double v) noexcept;
  void observe(std::size_t metric, double v) noexcept {
    observe(metric, std::span(&v, 1));
  }
  void observe(std::size_t metric, std::span<const double> values) noexcept;

  struct State;  // the library's own
  explicit StepWriter(State& state) noexcept : state_(state) {}

 private:
  friend class MultiConnectorMetrics;  // hands parts of it on
  void inc_integer(std::size_t metric, std::int64_t n) noexcept;

  State& state_;
};

// Metrics of the engine's own that must agree with vLLM's within every scrape,
// e.g. requests that arrived beside requests that run. They lie in the engine's
// bank and are written in the step's section, so a scrape sees both or neither.
// Metrics that need not agree are simpler to make: Registry::add_counter().
struct StepMetrics {
  struct Metric {
    Family family;                     // name, help, kind, number
    Labels labels = {};                // beside model_name and engine
    std::vector<double> buckets = {};  // histograms
    // On its way off the page, by the rule of vLLM's own: hidden one release
    // after `deprecated_in`, gone after two, counted by
    // StatLoggerOptions::vllm_version. Texts as long-lived as a literal.
    Lifecycle lifecycle = {};
    // Histograms: native buckets too, for values of 0 or more.
    std::optional<NativeHistogramOptions> native = {};
  };
  std::vector<Metric> metrics = {};

  // Called once in every record() of the Prometheus logger, inside the section:
  // only write, do not wait, allocate or throw.
  std::function<void(const StepRecord& step, StepWriter& writer)> write;
};

}  // namespace vllm_metrics::inline v0
