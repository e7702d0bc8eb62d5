#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "src/tools/sim/step_cost.h"
#include "src/tools/sim/virtual_time.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics::sim {

// What NVIDIA's DCGM exporter would say of the simulated devices, beside the
// engine's own families: how busy they were in the last ten seconds, from the
// cost of their steps, and how full their memory is. One device stands for all
// of an engine.
//
// Thread-safety: one thread writes; the page may be scraped meanwhile.
class DeviceGauges {
 public:
  static absl::StatusOr<DeviceGauges> create(Registry& registry,
                                             const StepCostModel& model,
                                             std::int64_t engines, Ticks now);

  // A step of `engine` that took from `begin` to `end`, which is now.
  void add_step(std::size_t engine, const StepCost& cost, Ticks begin,
                Ticks end);

  // Time has passed: shows the last ten whole seconds.
  void advance_to(Ticks now);

 private:
  static constexpr std::size_t kSeconds = 10;

  struct Activity {  // seconds of work in a second
    double busy = 0.0;
    double compute = 0.0;
    double memory = 0.0;
  };
  struct Device {
    Handle<Gauge> utilization;
    Handle<Gauge> tensor_active;
    Handle<Gauge> memory_active;
    Handle<Gauge> memory_used;
    std::array<Activity, kSeconds + 1> ring = {};  // the last is the present
  };

  void show(Device& device) const;

  std::vector<Device> devices_;
  Ticks start_ = 0;
  std::int64_t second_ = 0;  // the present one, of virtual time
};

}  // namespace vllm_metrics::sim
