#include "src/otlp/span_push.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace vllm_metrics::inline v0::otlp {

SpanStatLogger::SpanStatLogger(std::shared_ptr<SpanLanes> lanes,
                               std::string model_name, int engine_index,
                               std::uint64_t seed)
    : lanes_(std::move(lanes)),
      lane_(std::make_shared<SpanLane>(lanes_->settings.span_queue,
                                       std::move(model_name), engine_index)),
      random_(seed) {
  MutexLock lock(lanes_->mutex);
  lanes_->all.push_back(lane_);
}

// A request without a context gets a trace of its own, when it is sampled.
bool SpanStatLogger::sample(TraceContext& trace) {
  const Settings& settings = lanes_->settings;
  if (trace.valid() && settings.parent_based) return trace.sampled();
  if (settings.root_ratio <= 0.0) return false;
  if (settings.root_ratio < 1.0 &&
      std::generate_canonical<double, 53>(random_) >= settings.root_ratio)
    return false;
  if (trace.valid()) return true;
  const std::uint64_t id[2] = {random_() | 1, random_()};
  std::memcpy(trace.trace_id.data(), id, sizeof id);
  trace.span_id = {};
  return true;
}

void SpanStatLogger::record(const StepRecord& step) {
  if (step.iteration == nullptr) return;
  std::uint64_t dropped = 0;
  for (const FinishedRequestStats& stats : step.iteration->finished_requests) {
    TraceContext trace = stats.trace;
    if (!sample(trace)) continue;
    EndedRequest request{stats, step.iteration->iteration_timestamp};
    request.stats.trace = trace;
    if (!lane_->ring.push(request)) ++dropped;
  }
  lanes_->metrics->lost(ExporterMetrics::Loss::kQueueFull, dropped);
}

SpanPush::SpanPush(std::shared_ptr<SpanLanes> lanes, Delivery delivery,
                   std::uint64_t seed)
    : lanes_(std::move(lanes)), delivery_(std::move(delivery)), random_(seed) {}

bool SpanPush::run(double seconds) {
  const double deadline = delivery_.now() + seconds;
  std::vector<std::shared_ptr<SpanLane>> lanes;
  {
    MutexLock lock(lanes_->mutex);
    lanes = lanes_->all;
  }
  bool all_taken = true;
  for (const auto& lane : lanes) all_taken &= send_lane(*lane, deadline);
  lanes.clear();
  MutexLock lock(lanes_->mutex);
  std::erase_if(lanes_->all, [](const auto& lane) {
    return lane.use_count() == 1 && lane->ring.empty();  // its logger is gone
  });
  return all_taken;
}

// Until nothing waits, the time is over or a batch was not taken; what still
// waits then waits for the next run.
bool SpanPush::send_lane(SpanLane& lane, double deadline) {
  const Settings& settings = lanes_->settings;
  while (delivery_.now() < deadline) {
    std::vector<SpanSource> batch;
    EndedRequest request;
    while (batch.size() < settings.span_batch && lane.ring.pop(request))
      batch.push_back({request, lane.engine_index});
    if (batch.empty()) return true;

    const Delivered delivered = delivery_.send(
        encode(batch, lane.model_name, settings.resource, random_),
        deadline - delivery_.now());
    lanes_->metrics->ended(delivered);
    if (delivered.outcome == Outcome::kAccepted) continue;
    lanes_->metrics->lost(ExporterMetrics::Loss::kNotDelivered, batch.size());
    return false;
  }
  return false;
}

}  // namespace vllm_metrics::inline v0::otlp
