#include "src/tools/sim/scenario.h"

#include <fmt/format.h>

#include <array>

namespace vllm_metrics::sim {
namespace {

constexpr auto kScenarios = std::to_array<Scenario>({
    {"healthy", "nothing to do", [](Parameters&) {}},
});

}  // namespace

Parameters Scenario::parameters() const {
  Parameters out;
  out.engine.kv_cache_metrics = true;
  out.engine.enable_mfu_metrics = true;
  set(out);
  return out;
}

std::span<const Scenario> known_scenarios() { return kScenarios; }

const Scenario* find_scenario(std::string_view name) {
  for (const Scenario& scenario : kScenarios) {
    if (scenario.name == name) return &scenario;
  }
  return nullptr;
}

std::string scenario_names() {
  std::string out;
  for (const Scenario& scenario : kScenarios) {
    out += fmt::format("{}{}", out.empty() ? "" : ", ", scenario.name);
  }
  return out;
}

}  // namespace vllm_metrics::sim
