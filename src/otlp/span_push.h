#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/otlp/delivery.h"
#include "src/otlp/ended_request.h"
#include "src/otlp/exporter_metrics.h"
#include "src/otlp/settings.h"
#include "src/otlp/spans_message.h"
#include "src/registry/mutex.h"
#include "vllm_metrics/loggers/stat_logger.h"

namespace vllm_metrics::inline v0::otlp {

// The requests of one engine that wait to become spans.
struct SpanLane {
  SpanLane(std::size_t capacity, std::string model, int engine)
      : ring(capacity), model_name(std::move(model)), engine_index(engine) {}

  EndedRequestRing ring;
  std::string model_name;
  int engine_index;
  std::atomic<bool> logger_gone{false};  // its last request is in the ring
};

// What the loggers and the exporter of spans share, as long as one of them
// lives.
struct SpanLanes {
  SpanLanes(const Settings& s, std::unique_ptr<ExporterMetrics> m)
      : settings(s), metrics(std::move(m)) {}

  // The exporter's thread has ended: counts what waits, and all that comes, as
  // not delivered.
  void close();

  // After close(): counts what waits in a lane, whoever finds it.
  void give_up(SpanLane& lane) ABSL_LOCKS_EXCLUDED(mutex);

  // Whether the largest message there may be, or all of a queue, waits.
  bool has_full_batch() ABSL_LOCKS_EXCLUDED(mutex);

  const Settings settings;
  const std::unique_ptr<ExporterMetrics> metrics;
  std::atomic<bool> closed{false};
  Mutex mutex;
  std::vector<std::shared_ptr<SpanLane>> all ABSL_GUARDED_BY(mutex);
};

// Puts the sampled requests of an engine into its lane.
class SpanStatLogger final : public StatLoggerBase {
 public:
  SpanStatLogger(std::shared_ptr<SpanLanes> lanes, std::string_view model_name,
                 int engine_index, std::uint64_t seed);
  ~SpanStatLogger() override;

  std::string_view name() const override { return "otlp_spans"; }
  void record(const StepRecord& step) override;

 private:
  bool sample(TraceContext& trace);

  std::shared_ptr<SpanLanes> lanes_;
  std::shared_ptr<SpanLane> lane_;
  std::mt19937_64 random_;
};

// One export after the other: what a SpanExporter does each delay.
// Thread-safety: none.
class SpanPush {
 public:
  SpanPush(std::shared_ptr<SpanLanes> lanes, Delivery delivery,
           std::uint64_t seed);

  // Sends what waits, batch after batch, within `seconds`. True: all was taken.
  bool run(double seconds);

 private:
  bool send_lane(SpanLane& lane, double deadline);
  std::uint64_t take_batch(SpanLane& lane, std::vector<SpanSource>& batch);

  std::shared_ptr<SpanLanes> lanes_;
  Delivery delivery_;
  std::mt19937_64 random_;
};

}  // namespace vllm_metrics::inline v0::otlp
