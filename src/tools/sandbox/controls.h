#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "src/tools/sim/parameters.h"

namespace vllm_metrics::sandbox {

using Json = nlohmann::ordered_json;

// What the page offers of a simulation's parameters. Names are those of the
// flags; ranges are what one machine simulates while somebody looks on.
//
// Each as JSON: name, label, group, help, unit, `restarts` (another engine
// begins), `kind` (`number`, `whole`, `choice`, `turn`) and for numbers min,
// max, `scale` (`linear`, `log`), for choices the values.
Json controls_json();

// The values of all of them.
Json values_json(const sim::Parameters& parameters);

// Sets what an object of names and values says.
// Errors: InvalidArgument with name, value and what is allowed; `parameters` is
// then to be thrown away.
absl::Status set_values(const Json& values, sim::Parameters& parameters);

// The same KV cache, its number of blocks given by the part of the device's
// memory that is used. Unchanged when no part gives just that number.
sim::Parameters with_blocks_from_memory(sim::Parameters parameters);

}  // namespace vllm_metrics::sandbox
