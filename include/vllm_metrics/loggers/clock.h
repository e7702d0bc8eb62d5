#pragma once

#include <memory>

#include "vllm_metrics/export.h"

namespace vllm_metrics::inline v0 {

// Where the loggers take the time from, so that a recorded trace or a
// simulation gives the same numbers every time.
//
// Thread-safety: all members are called from the threads of record() and log(),
// at once.
class VLLM_METRICS_EXPORT Clock {
 public:
  virtual ~Clock();

  virtual double wall() const noexcept = 0;  // seconds since 1970
  virtual double monotonic()
      const noexcept = 0;  // seconds, from any origin; never falls

  // wall() as of the machine's latest tick, some milliseconds ago, where that
  // costs less: record() asks for it, to stamp gauges.
  virtual double coarse_wall() const noexcept { return wall(); }

  // The machine's clocks.
  static std::shared_ptr<const Clock> system();
};

}  // namespace vllm_metrics::inline v0
