#pragma once

#include <array>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "src/tools/sim/latency_tally.h"
#include "src/tools/sim/request.h"
#include "vllm_metrics/stats/iteration_stats.h"
#include "vllm_metrics/stats/scheduler_stats.h"

namespace vllm_metrics::sim {

// What a run came to, counted beside the library and independent of it.
class RunReport {
 public:
  void add_step(const SchedulerStats& scheduler);
  void add_outputs(const IterationStats& iteration);
  void add_arrivals(std::int64_t arrived, std::int64_t refused);
  void add_finished(const Request& request, Ticks now);

  std::int64_t arrived() const { return arrived_; }
  std::int64_t refused() const { return refused_; }
  std::int64_t finished() const;
  const LatencyTally& inter_token() const { return inter_token_; }

  // What the text needs to know besides.
  struct Context {
    std::string workload;
    double virtual_seconds = 0.0;
    double real_seconds = 0.0;
    double record_seconds = 0.0;  // real, spent in StatLoggerManager::record()
    bool interrupted = false;
    bool kv_cache_limited = true;
  };

  // The table that a run ends with.
  std::string summary(const Context& context) const;

 private:
  std::int64_t steps_ = 0;
  std::int64_t arrived_ = 0;
  std::int64_t refused_ = 0;
  std::array<std::int64_t, kFinishReasonNames.size()> finished_{};
  std::int64_t preemptions_ = 0;
  std::int64_t prompt_tokens_ = 0;
  std::int64_t cached_tokens_ = 0;
  std::int64_t generation_tokens_ = 0;
  std::int64_t prefix_queries_ = 0;
  std::int64_t prefix_hits_ = 0;
  double peak_kv_cache_usage_ = 0.0;
  LatencyTally first_token_;
  LatencyTally inter_token_;
  LatencyTally queue_;
  LatencyTally end_to_end_;
};

// Rows of --requests: virtual seconds since the start, exact. Empty is what a
// request never came to.
void write_request_header(std::ostream& out);
void write_request_row(std::ostream& out, int engine, const Request& request);

// Rows of --itl.
void write_inter_token_rows(std::ostream& out, const LatencyTally& tally);

}  // namespace vllm_metrics::sim
