#pragma once

#include <cstddef>
#include <vector>

#include "vllm_metrics/stats/iteration_stats.h"

namespace vllm_metrics::bench {

// The request-level path of a decode step: one output for each of some running
// requests.
class Outputs {
 public:
  explicit Outputs(std::size_t requests)
      : requests_(requests), outputs_(requests) {
    for (EngineCoreOutput& output : outputs_) output.num_new_tokens = 1;
    step();  // the first outputs
  }

  [[gnu::noinline]] void step() {
    now_ += 0.02;
    stats_.reset(now_);
    const auto request_of =
        [requests = requests_.data()](std::size_t i) -> RequestStateStats& {
      return requests[i];
    };
    stats_.update_from_outputs(outputs_, now_, request_of);
  }

  [[gnu::noinline]] void step_one_by_one() {
    now_ += 0.02;
    stats_.reset(now_);
    for (std::size_t i = 0; i < requests_.size(); ++i)
      stats_.update_from_output(outputs_[i], now_, requests_[i]);
  }

  const IterationStats& stats() const noexcept { return stats_; }

 private:
  double now_ = 1000.0;
  IterationStats stats_;
  std::vector<RequestStateStats> requests_;
  std::vector<EngineCoreOutput> outputs_;
};

}  // namespace vllm_metrics::bench
