#include "src/otlp/metrics_push.h"

#include <cstdint>
#include <utility>

#include "src/otlp/metrics_message.h"

namespace vllm_metrics::inline v0::otlp {
namespace {

std::uint64_t count_points(const Snapshot& snapshot) {
  std::uint64_t points = 0;
  for (const SchemaFamily& family : snapshot.schema->families)
    points += family.series.size();
  return points;
}

}  // namespace

MetricsPush::MetricsPush(std::shared_ptr<Registry> registry,
                         const Settings& settings, bool exponential,
                         std::shared_ptr<const Clock> clock, Delivery delivery,
                         std::unique_ptr<ExporterMetrics> metrics)
    : registry_(std::move(registry)),
      temporality_(settings.temporality),
      exponential_(exponential),
      resource_(settings.resource),
      clock_(std::move(clock)),
      delivery_(std::move(delivery)),
      metrics_(std::move(metrics)) {
  // A series without a time of its own counts from here.
  Snapshot empty{.schema = std::make_shared<const Schema>(), .words = {}};
  state_.advance(empty, clock_->wall());
}

Delivered MetricsPush::send(std::string_view body, const Snapshot& snapshot,
                            double deadline) {
  const Delivered delivered =
      delivery_.send(body, count_points(snapshot), deadline - delivery_.now());
  metrics_->ended(delivered);
  return delivered;
}

// False: still unknown, and newer points have to wait behind them.
bool MetricsPush::settle_pending(double deadline) {
  if (!pending_) return true;
  const Delivered delivered =
      send(pending_->body, pending_->snapshot, deadline);
  if (delivered.outcome == Outcome::kAccepted) {
    state_.advance(pending_->snapshot, pending_->time);
  } else if (!delivered.final) {
    return false;  // an earlier attempt may still have been taken
  }
  pending_.reset();
  return true;
}

bool MetricsPush::run(double seconds) {
  const double deadline = delivery_.now() + seconds;
  if (!settle_pending(deadline)) return false;

  registry_->snapshot(snapshot_);
  const double time = clock_->wall();
  const bool delta = temporality_ == Temporality::kDelta;
  if (delta) {
    state_.align(snapshot_, time);
  } else {
    state_.observe(snapshot_, time);
  }
  std::string body = encode({.snapshot = snapshot_,
                             .state = state_,
                             .time = time,
                             .temporality = temporality_,
                             .exponential = exponential_,
                             .resource = resource_});
  const Outcome outcome = send(body, snapshot_, deadline).outcome;
  if (!delta) return outcome == Outcome::kAccepted;
  if (outcome == Outcome::kAccepted) {
    state_.advance(snapshot_, time);
  } else if (outcome == Outcome::kUnknown) {
    pending_ = Pending{std::move(body), snapshot_, time};
  }
  return outcome == Outcome::kAccepted;
}

}  // namespace vllm_metrics::inline v0::otlp
