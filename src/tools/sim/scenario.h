#pragma once

#include <span>
#include <string>
#include <string_view>

#include "src/tools/sim/parameters.h"
#include "src/tools/sim/virtual_time.h"

namespace vllm_metrics::sim {

// A classic case from the life of an operator: parameters that make the
// engine's families show its evidence, whatever the seed.
struct Scenario {
  std::string_view name;
  std::string_view summary;  // what the page shows
  void (*set)(Parameters&);  // the case, from the presets on

  // What changes on the way, and when; null: nothing.
  void (*change)(Parameters&) = nullptr;
  Ticks change_at = kNever;

  Parameters parameters() const;
};

std::span<const Scenario> known_scenarios();

// Null: there is none of this name.
const Scenario* find_scenario(std::string_view name);

// All of them, with commas between.
std::string scenario_names();

}  // namespace vllm_metrics::sim
