#pragma once

#include <cstdint>
#include <memory>

#include "src/loggers/cuda_graph_log.h"
#include "src/loggers/perf_log.h"
#include "src/loggers/spec_decoding_log.h"
#include "vllm_metrics/loggers/kv_connector.h"
#include "vllm_metrics/loggers/options.h"
#include "vllm_metrics/stats/step_record.h"

namespace vllm_metrics::inline v0 {

// What the steps since the last log() add up to, of one engine or of all.
//
// Thread-safety: none; TextLog guards it.
struct LogInterval {
  explicit LogInterval(const StatLoggerOptions& options);

  void observe(const StepRecord& step);
  void reset();

  // Fields of the main record.
  std::int64_t computed_prompt_tokens = 0;
  std::int64_t generation_tokens = 0;
  std::int64_t preemptions = 0;
  std::int64_t corrupted = 0;

  // The records that may follow it. The connector's and MFU's are null when
  // they are not wanted.
  SpecDecodingLog spec_decoding = {};
  CudaGraphLog cuda_graphs = {};
  PerfLog perf = {};
  std::unique_ptr<KvConnectorLog> connector = {};
  bool connector_has_data = false;

 private:
  void observe(const SchedulerStats& scheduler);

  std::string_view connector_name_;
};

}  // namespace vllm_metrics::inline v0
