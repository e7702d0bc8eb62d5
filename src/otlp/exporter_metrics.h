#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "src/otlp/delivery.h"
#include "src/otlp/settings.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics::inline v0::otlp {

// What an exporter says about itself, on the page while it lives.
// Thread-safety: every member from any thread.
class ExporterMetrics {
 public:
  enum class Loss { kRejected, kNotDelivered, kQueueFull };

  static absl::StatusOr<std::unique_ptr<ExporterMetrics>> create(
      Registry& registry, Signal signal);

  void ended(const Delivered& delivered) noexcept {
    exports_[static_cast<std::size_t>(delivered.outcome)]->inc();
    lost(Loss::kRejected, static_cast<std::uint64_t>(delivered.rejected));
  }
  void lost(Loss reason, std::uint64_t items) noexcept {
    if (items > 0) losses_[static_cast<std::size_t>(reason)]->inc(items);
  }

 private:
  using Counters = std::vector<Handle<Counter>>;
  ExporterMetrics(Counters exports, Counters losses)
      : exports_(std::move(exports)), losses_(std::move(losses)) {}

  Counters exports_;  // by Outcome
  Counters losses_;   // by Loss
};

}  // namespace vllm_metrics::inline v0::otlp
