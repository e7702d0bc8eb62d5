#include "src/tools/sim/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace vllm_metrics::sim {
namespace {

// Real seconds between two looks for a signal and two lines of progress.
constexpr double kLookInterval = 0.1;

// Between two visits of the control, while nothing happens.
constexpr double kVisitInterval = 0.02;

// A controlled run that is later than that does not hurry to catch up.
constexpr double kMostLate = 0.25;

}  // namespace

void Run::to_end() {
  for (;;) {
    look();
    if (time_.interrupted()) break;
    if (control_ != nullptr) {
      control_->visit(*this);
      if (time_.seconds_until(simulation_->now()) < -kMostLate) {
        time_.set_speed(time_.speed(), simulation_->now());
      }
    }
    const Ticks next = simulation_->next_event();
    if (next == kNever) break;
    if (next_stop_ < stops_.size() && stops_[next_stop_] < next &&
        stops_[next_stop_] <= end_) {
      if (!wait_until(stops_[next_stop_])) continue;
      simulation_->advance_to(stops_[next_stop_]);
      stop_(next_stop_++);
      continue;
    }
    if (!wait_until(std::min(next, end_))) continue;
    if (next > end_) {
      simulation_->advance_to(end_);
      break;
    }
    simulation_->run_event(next);
  }
  simulation_->finish();
  progress_.clear();
  // Those that the run did not come to show its end.
  while (next_stop_ < stops_.size()) stop_(next_stop_++);
}

absl::Status Run::restart(const SimOptions& options) {
  const std::shared_ptr<Registry> registry = simulation_->registry();
  simulation_.reset();  // its families are gone then
  auto created = factory_(options, registry);
  if (!created.ok()) return created.status();
  simulation_ = *std::move(created);
  time_.set_speed(time_.speed(), 0);
  return absl::OkStatus();
}

// Now and then: for a signal, and to show how far it is.
void Run::look() {
  const double now = time_.elapsed_seconds();
  if (now < next_look_) return;
  next_look_ = now + kLookInterval;
  time_.sleep(0.0);
  if (progress_.active()) progress_.show(progress_text());
}

// False when it is to be asked anew what comes next.
bool Run::wait_until(Ticks then) {
  const double interval = control_ != nullptr ? kVisitInterval : kLookInterval;
  for (;;) {
    if (time_.interrupted()) return false;
    const double left = time_.seconds_until(then);
    if (left <= 0.0) return true;
    const Ticks now = std::max(time_.virtual_now(), simulation_->now());
    simulation_->advance_to(std::min(now, then));
    look();
    if (control_ != nullptr && control_->visit(*this)) return false;
    time_.sleep(std::min(left, interval));
  }
}

std::string Run::progress_text() const {
  const RunReport& report = simulation_->report();
  const double now = to_seconds(simulation_->now());
  double done = end_ == kNever ? 0.0 : now / to_seconds(end_);
  const auto size = simulation_->workload().size();
  if (size.has_value()) {
    const auto served = report.finished() + report.refused();
    done = std::max(done,
                    static_cast<double>(served) / static_cast<double>(*size));
  }
  return fmt::format("{:.1f} s: {} running, {} waiting, {} finished{}", now,
                     simulation_->num_running(), simulation_->num_waiting(),
                     report.finished(),
                     done > 0.0 ? fmt::format(", {:.0f} %", 100.0 * done) : "");
}

}  // namespace vllm_metrics::sim
