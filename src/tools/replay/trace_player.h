#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/tools/replay/engine_core.h"
#include "src/tools/replay/trace_event.h"
#include "vllm_metrics/loggers/clock.h"
#include "vllm_metrics/loggers/log_sink.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"
#include "vllm_metrics/registry/registry.h"
#include "vllm_metrics/registry/snapshot.h"
#include "vllm_metrics/stats/iteration_stats.h"
#include "vllm_metrics/stats/lora_stats.h"
#include "vllm_metrics/stats/request_state_stats.h"

namespace vllm_metrics::replay {

// The clocks of a trace: they stand still until an event moves them.
class TraceClock : public Clock {
 public:
  void set(const ClockReading& reading);

  double wall() const noexcept override { return wall_; }
  double monotonic() const noexcept override { return monotonic_; }
  std::int64_t mono_ns() const noexcept { return mono_ns_; }

 private:
  double wall_ = 0.0;
  double monotonic_ = 0.0;
  std::int64_t mono_ns_ = 0;
};

// Does to a StatLoggerManager what an engine and its front end do, as a trace
// says. All numbers come from the library; this class only keeps the live
// requests and passes things on, the engine cores' part to EngineCore.
//
// Thread-safety: none.
class TracePlayer {
 public:
  // Builds the loggers, whose series go to `registry` (null: one of their own).
  // InvalidArgument: an option that is not allowed.
  static absl::StatusOr<std::unique_ptr<TracePlayer>> create(
      const TraceConfig& config, const ClockReading& clocks,
      std::shared_ptr<LogSink> log_sink,
      std::shared_ptr<Registry> registry = nullptr);

  // Applies one event. InvalidArgument: it does not fit those before it.
  absl::Status play(const TraceEvent& event);

  // What the engine should say of the model's shape; empty: nothing.
  std::string_view warning() const { return engine_core_.warning(); }

  const Registry& registry() const { return *manager_->registry(); }

  // Of the last `snapshot` event; null when there was none.
  const Snapshot* snapshot() const {
    return snapshot_.has_value() ? &*snapshot_ : nullptr;
  }

 private:
  // A parent that not all children have joined yet.
  struct OpenParent {
    std::shared_ptr<ParentRequest> request;
    std::int64_t children = 0;
  };

  explicit TracePlayer(EngineCore engine_core)
      : engine_core_(std::move(engine_core)) {}
  static absl::Status apply(const TraceConfig& config);
  absl::Status apply(const InitEvent& event);
  absl::Status apply(const RecordEvent& event);
  absl::Status apply(const SleepEvent& event);
  absl::Status apply(const LogEvent& event);
  static absl::Status apply(const TickEvent& event);
  absl::Status apply(const RequestEvent& event);
  absl::Status apply(const OutputEvent& event);
  absl::Status apply(const AbortEvent& event);
  absl::Status apply(const KvBlockEvent& event);
  absl::Status apply(const SnapshotEvent& event);
  void add_lora_states(SchedulerStats& scheduler);
  void apply_output(const RequestOutput& output, double timestamp);
  absl::StatusOr<std::shared_ptr<ParentRequest>> join(const ParentRef& parent);

  std::shared_ptr<TraceClock> clock_ = std::make_shared<TraceClock>();
  std::unique_ptr<StatLoggerManager> manager_;
  std::unordered_map<std::string, RequestStateStats> requests_;
  std::unordered_map<std::string, OpenParent> parents_;
  LoraRequestStates lora_states_;
  SchedulerStats live_adapters_;  // the lists of lora_states_, nothing else
  EngineCore engine_core_;
  IterationStats iteration_;
  std::optional<Snapshot> snapshot_;
};

}  // namespace vllm_metrics::replay
