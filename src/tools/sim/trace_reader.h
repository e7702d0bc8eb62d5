#pragma once

#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "src/tools/sim/request.h"

namespace vllm_metrics::sim {

struct Trace {
  Ticks epoch = 0;                    // wall clock at its beginning
  std::vector<RequestSpec> requests;  // in order of arrival
};

// Reads a public trace of requests; which format it is, the content tells.
//
// JSON Lines (Mooncake): an object per line,
//   {"timestamp": 27482, "input_length": 6955, "output_length": 52,
//    "hash_ids": [46, 47, ...]}
// with milliseconds since the beginning, tokens, and an id for the content of
// each 512 tokens of the prompt (may be left out: nothing is shared).
//
// CSV (Azure): the header TIMESTAMP,ContextTokens,GeneratedTokens, then rows
// like 2023-11-16 18:17:03.9799600,4808,10 (UTC). It begins with the first one.
//
// An output of 0 tokens counts as 1: the engine computes one to see the end.
// Requests that are out of order are put in order.
// Errors: NotFound when the file cannot be read; InvalidArgument that names
// file, line, field and what is allowed.
absl::StatusOr<Trace> read_trace(const std::string& path);
absl::StatusOr<Trace> read_trace(std::istream& in, std::string_view name);

}  // namespace vllm_metrics::sim
