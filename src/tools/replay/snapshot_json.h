#pragma once

#include <nlohmann/json.hpp>

#include "vllm_metrics/registry/snapshot.h"

namespace vllm_metrics::replay {

// vLLM's families of a snapshot the way vLLM's snapshot reader returns them: a
// list of objects sorted by (name, labels), each with name, kind and labels,
// and
//   gauge      value; NaN and infinities as texts
//   counter    value: a whole number, cut off
//   histogram  buckets (text of the bound: cumulative count), count and sum
//   vector     values by position: the counters of one `..._per_pos` family,
//              zero where a position has no series
nlohmann::json snapshot_json(const Snapshot& snapshot);

}  // namespace vllm_metrics::replay
