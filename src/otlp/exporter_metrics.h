#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "src/otlp/delivery.h"
#include "src/otlp/settings.h"
#include "vllm_metrics/loggers/log_sink.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics::inline v0::otlp {

// What an exporter says about itself: counters on the page while it lives, and
// a line in the log when exports begin to fail, one when they no longer do, and
// one when a collector rejects items for the first time.
// Thread-safety: lost() from any thread, ended() from the exporter's.
class ExporterMetrics {
 public:
  enum class Loss { kRejected, kNotDelivered, kQueueFull };

  static absl::StatusOr<std::unique_ptr<ExporterMetrics>> create(
      Registry& registry, Signal signal,
      std::shared_ptr<LogSink> log_sink = {});

  void ended(const Delivered& delivered) noexcept;
  void lost(Loss reason, std::uint64_t items) noexcept {
    if (items > 0) losses_[static_cast<std::size_t>(reason)]->inc(items);
  }

 private:
  using Counters = std::vector<Handle<Counter>>;
  ExporterMetrics(Counters exports, Counters losses, Signal signal,
                  std::shared_ptr<LogSink> log_sink)
      : exports_(std::move(exports)),
        losses_(std::move(losses)),
        signal_(signal),
        log_sink_(std::move(log_sink)) {}
  void say(const Delivered& delivered);

  Counters exports_;  // by Outcome
  Counters losses_;   // by Loss
  const Signal signal_;
  const std::shared_ptr<LogSink> log_sink_;
  std::uint64_t failures_ = 0;  // since the last export that was taken
  bool said_partial_ = false;
};

}  // namespace vllm_metrics::inline v0::otlp
