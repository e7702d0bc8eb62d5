#include "src/otlp/metrics_push.h"

#include <exception>
#include <utility>

namespace vllm_metrics::inline v0::otlp {

MetricsPush::MetricsPush(std::shared_ptr<Registry> registry,
                         const Settings& settings, bool exponential,
                         std::shared_ptr<const Clock> clock, Delivery delivery,
                         std::unique_ptr<ExporterMetrics> metrics)
    : registry_(std::move(registry)),
      temporality_(settings.temporality),
      exponential_(exponential),
      resource_(settings.resource),
      gen_ai_(settings.gen_ai),
      clock_(std::move(clock)),
      delivery_(std::move(delivery)),
      metrics_(std::move(metrics)) {
  if (temporality_ == Temporality::kDelta) {
    registry_->snapshot(snapshot_);
    state_.begin(snapshot_, clock_->wall());
  } else {
    state_.advance({.schema = std::make_shared<const Schema>(), .words = {}},
                   clock_->wall());
  }
}

Delivered MetricsPush::send(const EncodedMetrics& request, double deadline) {
  const Delivered delivered =
      delivery_.send(request.bytes, request.points, deadline - delivery_.now());
  metrics_->ended(delivered);
  return delivered;
}

// False: still unknown (an earlier attempt may have been taken), and newer
// points have to wait behind them.
bool MetricsPush::settle_pending(double deadline) {
  if (!pending_) return true;
  const Delivered delivered = send(pending_->request, deadline);
  if (delivered.outcome != Outcome::kAccepted) {
    if (!delivered.final) return false;
    give_up(pending_->request);
  }
  state_.advance(pending_->snapshot, pending_->time);
  pending_.reset();
  return true;
}

// Who may have taken it must not get it as a part of newer points: better once
// or never than twice.
void MetricsPush::give_up(const EncodedMetrics& request) {
  metrics_->lost(ExporterMetrics::Loss::kNotDelivered, request.points);
}

EncodedMetrics MetricsPush::read(double time) {
  if (temporality_ == Temporality::kDelta) {
    state_.align(snapshot_, time);
  } else {
    state_.observe(snapshot_, time);
  }
  return encode({.snapshot = snapshot_,
                 .state = state_,
                 .time = time,
                 .temporality = temporality_,
                 .exponential = exponential_,
                 .resource = resource_,
                 .gen_ai = gen_ai_});
}

bool MetricsPush::run(double seconds) {
  const double deadline = delivery_.now() + seconds;
  if (!settle_pending(deadline)) return false;

  const bool delta = temporality_ == Temporality::kDelta;
  double time = 0.0;
  EncodedMetrics request;
  try {
    registry_->snapshot(snapshot_);
    time = clock_->wall();
    request = read(time);
  } catch (const std::exception&) {
    metrics_->ended({.error = "no memory"});
    return false;
  }
  const Delivered delivered = send(request, deadline);
  const bool accepted = delivered.outcome == Outcome::kAccepted;
  if (!delta || delivered.outcome == Outcome::kRefused) return accepted;
  if (accepted) {
    state_.advance(snapshot_, time);
  } else if (delivered.final) {
    give_up(request);
    state_.advance(snapshot_, time);
  } else {
    pending_ = Pending{std::move(request), std::move(snapshot_), time};
  }
  return accepted;
}

}  // namespace vllm_metrics::inline v0::otlp
