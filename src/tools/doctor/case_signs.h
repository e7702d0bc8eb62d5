#pragma once

#include "src/tools/doctor/diagnosis.h"
#include "src/tools/doctor/reading.h"

namespace vllm_metrics::doctor {

// What the rules ask of a reading. Where the pages lack a family its figure is
// 0 and the signs that need it are not seen.
struct CaseSigns {
  CaseSigns(const Reading& reading, const Objectives& objectives);

  // Seconds of a request, mean.
  double queue = 0.0;
  double prefill = 0.0;
  double decode = 0.0;

  double ttft_p95 = 0.0;
  double itl_p50 = 0.0;
  double itl_p99 = 0.0;
  double tpot = 0.0;          // mean
  double kv_usage = 0.0;      // mean of both pages
  double ended = 0.0;         // requests
  double abort_share = 0.0;   // of these
  double decode_share = 0.0;  // of a request's time
  double step_tokens = 0.0;   // mean
  double even_share = 0.0;    // of the busiest engine's tokens / the mean

  // Requests wait on both pages, longer than their prefill takes.
  bool queues = false;
  bool ttft_is_bad = false;
  bool kv_is_full = false;
  // No more run on the later page, though others wait: a limit of their number.
  bool running_does_not_rise = false;
  bool preempts = false;
  // Most steps take as many tokens as any does, far more than requests run.
  bool steps_are_full = false;
  // The tensor cores work, by the GPUs' exporter; without one, full steps.
  bool computes = false;
  // The memory works and the tensor cores do not; without an exporter, most of
  // a request's time is decode.
  bool reads_memory = false;
  // Engines share the prompts evenly, and fewer hit than until the first page.
  bool scatters = false;
  // Blocks are evicted sooner than anybody answers, though neither what runs,
  // a queue nor a busy GPU explains it.
  bool thrashes = false;
  // Outputs come evenly on the average, and some much later.
  bool stutters = false;
};

}  // namespace vllm_metrics::doctor
