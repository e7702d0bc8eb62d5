#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "src/tools/sim/flags.h"
#include "vllm_metrics/stats/model_shape.h"

namespace vllm_metrics::sim {

// What the scheduler goes by; a running engine reads it anew in every step.
// Names are vLLM's.
struct SchedulerParameters {
  std::int64_t max_num_batched_tokens = 8192;  // computed in one step
  std::int64_t max_num_seqs = 256;             // running at once
  std::int64_t max_num_active_seqs = 0;        // the same, if lower; 0: no cap
  // Most prompt tokens of one request in a step; 0: what the budget leaves.
  std::int64_t long_prefill_token_threshold = 0;
  // That the model agrees with a drafted token, all before it accepted; 0..1.
  double acceptance_rate = 0.7;

  bool operator==(const SchedulerParameters&) const = default;
};

// Where KV blocks go that the GPU has no room for.
inline constexpr std::string_view kOffloadNone = "none";
inline constexpr std::string_view kOffloadNative = "native";
inline constexpr std::string_view kOffloadSimple = "simple";
inline constexpr std::string_view kOffloadBoth = "both";  // two connectors

// What an engine is started with: another value is another engine.
struct EngineParameters {
  std::int64_t engines = 1;  // data-parallel ranks
  std::string model = "dense-8b";
  // Of `model`, by choose_model(); parallelism and kinds of numbers are those
  // below.
  ModelShape shape;
  std::string device = "H100 SXM";     // of known_device_peaks()
  std::string quantization = "model";  // of the weights: as the model has it
  std::int64_t tensor_parallel_size = 1;
  bool enable_expert_parallel = false;
  bool enforce_eager = false;           // no CUDA graphs
  std::int64_t max_model_len = 131072;  // prompt and output
  bool enable_prefix_caching = true;
  std::int64_t block_size = 16;  // tokens
  std::string kv_cache_dtype = "auto";
  double gpu_memory_utilization = 0.9;  // fraction
  // Unset: what the device's memory holds; 0: no limit.
  std::optional<std::int64_t> num_gpu_blocks;
  std::int64_t speculative_tokens = 0;  // drafted a step; 0: no speculation
  std::int64_t lora_adapters = 0;       // served; 0: no LoRA
  bool kv_transfer = false;             // prompts are computed elsewhere
  double kv_transfer_bandwidth = 50.0;  // 1e9 bytes a second
  std::string kv_offload{kOffloadNone};
  double kv_offload_size = 16.0;                // 1e9 bytes of the CPU's memory
  double kv_offload_bandwidth = 25.0;           // 1e9 bytes a second, each way
  std::int64_t kv_offload_store_threshold = 0;  // times asked for
  double weight_update_interval = 0.0;          // seconds; 0: none

  // What is measured.
  bool kv_cache_metrics = false;
  double kv_cache_metrics_sample = 0.01;
  bool native_histograms = false;  // of latencies
  bool exemplars = false;          // requests have traces
  bool cudagraph_metrics = false;
  bool enable_mfu_metrics = false;
  bool enable_logging_iteration_details = false;
  bool compute_nans_in_logits = false;

  EngineParameters();
  bool operator==(const EngineParameters&) const = default;
};

// Where the front end sends a request.
inline constexpr std::string_view kLeastLoaded = "least-loaded";
inline constexpr std::string_view kRoundRobin = "round-robin";
inline constexpr std::string_view kSticky = "sticky";  // by its first text

// Who asks for what.
struct WorkloadParameters {
  std::string routing{kLeastLoaded};

  // Open loop: requests a second, whatever becomes of them (Poisson).
  double rate = 8.0;
  // Closed loop instead, above 0: clients that each wait for their answer,
  // think, and ask again.
  std::int64_t concurrency = 0;
  double think_time = 0.0;  // seconds, mean
  // Requests of one conversation: each prompt is all that was said before it
  // and something new.
  std::int64_t turns = 1;

  // Log-normal lengths: mean, and standard deviation of the logarithm.
  double prompt_tokens = 1024.0;  // with `turns`: what a turn adds
  double prompt_spread = 0.8;
  double output_tokens = 256.0;
  double output_spread = 0.8;
  double long_prompt_share = 0.0;  // of requests, 0..1
  double long_prompt_tokens = 32768.0;

  // The part of each prompt, 0..1, that is one of some shared texts.
  double prefix_share = 0.3;
  std::int64_t prefix_groups = 8;

  double length_share = 0.1;     // of requests, end at their max_tokens
  double patience = 0.0;         // seconds to the last token; 0: no end to it
  double corrupted_share = 0.0;  // of requests, have NaN logits

  bool operator==(const WorkloadParameters&) const = default;
};

// All that can be turned while a simulation runs.
struct Parameters {
  SchedulerParameters scheduler;
  EngineParameters engine;
  WorkloadParameters workload;

  bool operator==(const Parameters&) const = default;
};

// A description of each parameter, by group: its name (that of its flag), what
// it is for, what is allowed, its value now, and how to set it from a text. For
// command line, help and every other surface. `parameters` must outlive it.
std::vector<FlagGroup> workload_flags(WorkloadParameters& workload);
std::vector<FlagGroup> engine_flags(Parameters& parameters);

// Errors: InvalidArgument that names a parameter, its value and what is
// allowed.
absl::Status validate(const Parameters& parameters);

// The shape of a built-in model, or of a Hugging Face config.json (the file or
// its folder). Errors: InvalidArgument or NotFound, with what is allowed.
absl::Status choose_model(const std::string& model, EngineParameters& engine);

}  // namespace vllm_metrics::sim
