#include "src/otlp/span_push.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <utility>

#include "vllm_metrics/registry/labels.h"

namespace vllm_metrics::inline v0::otlp {

SpanStatLogger::SpanStatLogger(std::shared_ptr<SpanLanes> lanes,
                               std::string_view model_name, int engine_index,
                               std::uint64_t seed)
    : lanes_(std::move(lanes)),
      lane_(std::make_shared<SpanLane>(lanes_->settings.span_queue,
                                       valid_utf8(model_name), engine_index)),
      random_(seed) {
  MutexLock lock(lanes_->mutex);
  lanes_->all.push_back(lane_);
}

SpanStatLogger::~SpanStatLogger() {
  lane_->logger_gone.store(true, std::memory_order_release);
}

bool SpanLanes::has_full_batch() {
  MutexLock lock(mutex);
  return std::ranges::any_of(all, [this](const auto& lane) {
    return lane->ring.size() >=
           std::min(settings.span_batch, lane->ring.capacity());
  });
}

void SpanLanes::close() {
  closed.store(true);
  std::vector<std::shared_ptr<SpanLane>> lanes;
  {
    MutexLock lock(mutex);
    lanes = all;
  }
  for (const auto& lane : lanes) give_up(*lane);
}

void SpanLanes::give_up(SpanLane& lane) {
  MutexLock lock(mutex);
  EndedRequest request;
  std::uint64_t spans = 0;
  while (lane.ring.pop(request)) spans += num_spans(request.stats);
  metrics->lost(ExporterMetrics::Loss::kNotDelivered, spans);
}

// By the first 63 of the last 64 bits of the trace's id, as other SDKs: every
// service with the same ratio decides alike. A request without a context gets a
// trace of its own.
bool SpanStatLogger::sample(TraceContext& trace) {
  constexpr double kAll = 0x1p63;
  const Settings& settings = lanes_->settings;
  const bool has_context = trace.valid();
  if (has_context && settings.parent_based) return trace.sampled();

  std::uint64_t low = 0;
  if (has_context) {
    for (std::size_t i = 8; i < trace.trace_id.size(); ++i)
      low = low << 8 | trace.trace_id[i];
  } else {
    low = random_();
  }
  if (settings.root_ratio < 1.0 &&
      static_cast<double>(low >> 1) >= settings.root_ratio * kAll)
    return false;
  if (has_context) return true;

  std::uint64_t high = random_() | 1;
  for (std::size_t i = 8; i-- > 0;) {
    trace.trace_id[i] = static_cast<std::uint8_t>(high);
    trace.trace_id[i + 8] = static_cast<std::uint8_t>(low);
    high >>= 8;
    low >>= 8;
  }
  trace.span_id = {};
  return true;
}

void SpanStatLogger::record(const StepRecord& step) {
  if (step.iteration == nullptr) return;
  const bool was_closed = lanes_->closed.load();
  std::uint64_t too_many = 0;
  std::uint64_t too_late = 0;
  bool pushed = false;
  for (const FinishedRequestStats& stats : step.iteration->finished_requests) {
    TraceContext trace = stats.trace;
    if (!sample(trace)) continue;
    if (was_closed) {
      too_late += num_spans(stats);
    } else if (lane_->ring.push(stats, trace,
                                step.iteration->iteration_timestamp)) {
      pushed = true;
    } else {
      too_many += num_spans(stats);
    }
  }
  lanes_->metrics->lost(ExporterMetrics::Loss::kQueueFull, too_many);
  lanes_->metrics->lost(ExporterMetrics::Loss::kNotDelivered, too_late);
  // Closed meanwhile, behind the back of who emptied the lane.
  if (pushed && lanes_->closed.load()) lanes_->give_up(*lane_);
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
    // In this order: then nobody fills it any more.
    return lane->logger_gone.load(std::memory_order_acquire) &&
           lane->ring.size() == 0;
  });
  return all_taken;
}

// How many spans there are in it.
std::uint64_t SpanPush::take_batch(SpanLane& lane,
                                   std::vector<SpanSource>& batch) {
  const std::size_t most =
      std::min(lanes_->settings.span_batch, lane.ring.size());
  batch.reserve(most);
  EndedRequest request;
  std::uint64_t spans = 0;
  while (batch.size() < most && lane.ring.pop(request)) {
    batch.push_back({request, lane.engine_index});
    spans += num_spans(request.stats);
  }
  return spans;
}

// Until nothing waits, the time is over or a batch was not taken; what still
// waits then waits for the next run, and so does all while the server wants
// nothing.
bool SpanPush::send_lane(SpanLane& lane, double deadline) {
  while (delivery_.now() < deadline && delivery_.is_open(deadline)) {
    std::vector<SpanSource> batch;
    const std::uint64_t spans = take_batch(lane, batch);
    if (batch.empty()) return true;

    Delivered delivered;
    try {
      delivered = delivery_.send(
          encode(batch, lane.model_name, lanes_->settings, random_), spans,
          deadline - delivery_.now());
    } catch (const std::exception&) {
      delivered.error = "no memory";
    }
    lanes_->metrics->ended(delivered);
    if (delivered.outcome == Outcome::kAccepted) continue;
    lanes_->metrics->lost(ExporterMetrics::Loss::kNotDelivered, spans);
    return false;
  }
  return false;
}

}  // namespace vllm_metrics::inline v0::otlp
