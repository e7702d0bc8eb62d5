#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "vllm_metrics/export.h"
#include "vllm_metrics/stats/perf_context.h"

namespace vllm_metrics::inline v0 {

// Where the work of one or more steps goes, for the debug record of MFU.
// PerfModel fills one for a step; the logger adds up those of an interval.
// Vectors keep their storage: no allocation in steady state.
//
// Thread-safety: none.
// Definition: vLLM DebugPerfStats. vLLM v1/metrics/perf.py.
struct VLLM_METRICS_EXPORT PerfBreakdown {
  // Named as vLLM names it in the record, e.g. "attn.qkv_proj". The name's
  // text is the library's own and stays.
  struct Part {
    std::string_view name;
    double value = 0.0;
  };

  std::int64_t num_batches = 0;  // steps
  PerfContext context = {};
  std::vector<Part> flops = {};        // per GPU
  std::vector<Part> read_bytes = {};   // per GPU
  std::vector<Part> write_bytes = {};  // per GPU
  // Seconds the estimate took. The library reads no clock: who wants the
  // overhead in the record measures, and writes it here.
  double calculation_seconds = 0.0;

  // Adds another's sums. Parts that are new here follow those that were there.
  void add(const PerfBreakdown& other);

  // As new, keeping the storage.
  void clear() noexcept;
};

}  // namespace vllm_metrics::inline v0
