#include "src/tools/sim/device_gauges.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace vllm_metrics::sim {
namespace {

// Of the time a step's kernels are bound by arithmetic, the tensor cores are
// issued to; of the time it streams memory, that is. The rest is the kernels'
// beginnings and ends. More than the share of the peak that is reached, since
// clocks fall under load and a busy cycle is not a full one.
constexpr double kTensorShare = 0.85;
constexpr double kMemoryShare = 0.92;

absl::StatusOr<Handle<Gauge>> add_gauge(Registry& registry,
                                        std::string_view name,
                                        std::string_view help,
                                        std::string_view model,
                                        std::size_t engine) {
  return registry.add_gauge(
      {.name = std::string(name),
       .help = std::string(help),
       .kind = MetricKind::kGauge},
      {{"gpu", fmt::format("{}", engine)}, {"modelName", std::string(model)}});
}

}  // namespace

absl::StatusOr<DeviceGauges> DeviceGauges::create(Registry& registry,
                                                  const StepCostModel& model,
                                                  std::int64_t engines,
                                                  Ticks now) {
  DeviceGauges out;
  out.start_ = now;
  out.second_ = now / kTicksPerSecond;
  const std::string_view name = model.device().name;
  for (std::size_t i = 0; i < static_cast<std::size_t>(engines); ++i) {
    auto utilization =
        add_gauge(registry, "DCGM_FI_DEV_GPU_UTIL",
                  "Percent of the time that a kernel was running.", name, i);
    if (!utilization.ok()) return utilization.status();
    auto tensor = add_gauge(registry, "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
                            "Part of the cycles in which the tensor cores were "
                            "active.",
                            name, i);
    if (!tensor.ok()) return tensor.status();
    auto memory = add_gauge(registry, "DCGM_FI_PROF_DRAM_ACTIVE",
                            "Part of the cycles in which device memory was "
                            "read or written.",
                            name, i);
    if (!memory.ok()) return memory.status();
    auto used =
        add_gauge(registry, "DCGM_FI_DEV_FB_USED",
                  "MiB of device memory in use, free KV blocks too.", name, i);
    if (!used.ok()) return used.status();
    (*used)->set(model.used_memory_bytes() / (1024.0 * 1024.0));
    out.devices_.push_back({*std::move(utilization), *std::move(tensor),
                            *std::move(memory), *std::move(used)});
  }
  return out;
}

void DeviceGauges::add_step(std::size_t engine, const StepCost& cost,
                            Ticks begin, Ticks end) {
  advance_to(end);
  Activity& present = devices_[engine].ring.back();
  present.busy += to_seconds(end - begin);
  present.compute += kTensorShare * cost.compute;
  present.memory += kMemoryShare * cost.memory;
}

void DeviceGauges::advance_to(Ticks now) {
  const std::int64_t second = now / kTicksPerSecond;
  if (second == second_) return;
  const auto passed = static_cast<std::size_t>(
      std::min<std::int64_t>(second - second_, kSeconds + 1));
  second_ = second;
  for (Device& device : devices_) {
    for (std::size_t i = 0; i < passed; ++i) {
      std::rotate(device.ring.begin(), device.ring.begin() + 1,
                  device.ring.end());
      device.ring.back() = {};
    }
    show(device);
  }
}

void DeviceGauges::show(Device& device) const {
  Activity sum;
  for (std::size_t i = 0; i < kSeconds; ++i) {
    sum.busy += device.ring[i].busy;
    sum.compute += device.ring[i].compute;
    sum.memory += device.ring[i].memory;
  }
  const double seconds =
      std::clamp(static_cast<double>(second_ - start_ / kTicksPerSecond), 1.0,
                 static_cast<double>(kSeconds));
  // Steps count where they end, so a second may hold more than one.
  const auto part = [seconds](double sum_of) {
    return std::min(1.0, sum_of / seconds);
  };
  device.utilization->set(100.0 * part(sum.busy));
  device.tensor_active->set(part(sum.compute));
  device.memory_active->set(part(sum.memory));
}

}  // namespace vllm_metrics::sim
