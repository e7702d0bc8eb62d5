#include "src/tools/sim/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "src/tools/sim/kv_block_pool.h"
#include "src/tools/sim/step_cost.h"
#include "vllm_metrics/stats/device_peaks.h"

#ifdef VLLM_METRICS_SIM_MODEL_CONFIG
#include "vllm_metrics/model_config/hf_config.h"
#endif

namespace vllm_metrics::sim {
namespace {

constexpr std::int64_t kMany = 1 << 30;
constexpr double kYear = 365.0 * 86400.0;  // seconds

constexpr auto kRoutings =
    std::to_array<std::string_view>({kLeastLoaded, kRoundRobin, kSticky});
constexpr auto kQuantizations =
    std::to_array<std::string_view>({"model", "none", "fp8", "awq", "gptq"});
constexpr auto kCacheDtypes = std::to_array<std::string_view>(
    {"auto", "fp8", "fp8_e4m3", "fp8_e5m2", "nvfp4"});

constexpr auto kOffloads = std::to_array<std::string_view>(
    {kOffloadNone, kOffloadNative, kOffloadSimple, kOffloadBoth});

// The shapes of Llama 3.1 8B and 70B, and of Qwen3 30B-A3B.
struct BuiltInModel {
  std::string_view name;
  std::int64_t layers;
  std::int64_t hidden_size;
  std::int64_t query_heads;
  std::int64_t kv_heads;
  std::int64_t vocab_size;
  std::int64_t intermediate_size;
  std::int64_t experts;
  std::int64_t experts_per_token;
  std::int64_t expert_width;
};
constexpr std::int64_t kHeadDim = 128;  // of each of them
constexpr BuiltInModel kModels[] = {
    {"dense-8b", 32, 4096, 32, 8, 128256, 14336, 0, 0, 0},
    {"dense-70b", 80, 8192, 64, 8, 128256, 28672, 0, 0, 0},
    {"moe-30b", 48, 2048, 32, 4, 151936, 6144, 128, 8, 768},
};

ModelShape shape_of(const BuiltInModel& model) {
  return {.num_hidden_layers = model.layers,
          .hidden_size = model.hidden_size,
          .num_attention_heads = model.query_heads,
          .num_kv_heads = model.kv_heads,
          .head_dim = kHeadDim,
          .vocab_size = model.vocab_size,
          .intermediate_size = model.intermediate_size,
          .num_moe_layers = model.experts > 0 ? model.layers : 0,
          .num_experts = model.experts,
          .num_experts_per_tok = model.experts_per_token,
          .moe_intermediate_size = model.expert_width};
}

FlagValue gpu_blocks(EngineParameters& engine) {
  constexpr std::int64_t kMax = 100'000'000;
  const auto& blocks = engine.num_gpu_blocks;
  return {
      .name = "N",
      .allowed = fmt::format("a whole number from 0 to {}, or unlimited", kMax),
      .preset = blocks.has_value() ? fmt::format("{}", *blocks)
                                   : "what the memory holds",
      .parse =
          [&engine](std::string_view value) {
            std::int64_t n = KvBlockPool::kUnlimited;
            const bool fits =
                value == "unlimited" || whole(n, 0, kMax).parse(value);
            engine.num_gpu_blocks = n;
            return fits;
          },
      .fits =
          [&blocks] {
            return !blocks.has_value() || (*blocks >= 0 && *blocks <= kMax);
          }};
}

FlagValue device(EngineParameters& engine) {
  std::string names;
  for (const DevicePeaks& known : known_device_peaks()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
  }
  return {
      .name = "NAME",
      .allowed = names,
      .preset = engine.device,
      .parse =
          [&engine](std::string_view value) {
            engine.device = value;
            return find_device_peaks(value) != nullptr;
          },
      .fits =
          [&engine] { return find_device_peaks(engine.device) != nullptr; }};
}

FlagGroup device_flags(EngineParameters& engine) {
  return {
      "Model and device: what a step costs, and how many KV blocks there are",
      {{"--model",
        "dense-8b, dense-70b, moe-30b, or a Hugging Face config.json",
        text(engine.model, "MODEL")},
       {"--device", "an accelerator by its name, e.g. \"A100 SXM 80GB\"",
        device(engine)},
       {"--quantization", "of the weights; model: as its config.json says",
        choice(engine.quantization, kQuantizations)},
       {"--tensor-parallel-size", "GPUs that share each layer of an engine",
        whole(engine.tensor_parallel_size, 1, 64)},
       {"--enable-expert-parallel", "GPUs share experts, not each expert",
        turn(engine.enable_expert_parallel)},
       {"--enforce-eager", "no CUDA graphs: a step's overhead is larger",
        turn(engine.enforce_eager)},
       {"--gpu-memory-utilization", "the part of its memory that is used",
        real(engine.gpu_memory_utilization, 0.01, 1)},
       {"--kv-cache-dtype", "numbers of the KV cache; auto: the model's",
        choice(engine.kv_cache_dtype, kCacheDtypes)},
       {"--num-gpu-blocks",
        "KV blocks of each engine; 0 and unlimited: no limit",
        gpu_blocks(engine)},
       {"--block-size", "tokens in a KV block",
        whole(engine.block_size, 1, 65536)}}};
}

FlagGroup scheduler_flags(Parameters& parameters) {
  EngineParameters& engine = parameters.engine;
  SchedulerParameters& scheduler = parameters.scheduler;
  return {
      "Scheduler",
      {{"--engines", "data-parallel engines, each with its own KV cache",
        whole(engine.engines, 1, 256)},
       {"--max-num-batched-tokens", "token budget of a step",
        whole(scheduler.max_num_batched_tokens, 1, kMany)},
       {"--max-num-seqs", "requests that run at once",
        whole(scheduler.max_num_seqs, 1, kMany)},
       {"--max-num-active-seqs",
        "the same, if lower: fewer preemptions; 0: no cap",
        whole(scheduler.max_num_active_seqs, 0, kMany)},
       {"--long-prefill-token-threshold",
        "most prompt tokens of a request in a step; 0: what the budget leaves",
        whole(scheduler.long_prefill_token_threshold, 0, kMany)},
       {"--max-model-len",
        "tokens of prompt and output together; longer requests are refused",
        whole(engine.max_model_len, 1, kMany)},
       {"--no-prefix-caching", "compute every prompt from its beginning",
        turn(engine.enable_prefix_caching, false)}}};
}

FlagGroup feature_flags(Parameters& parameters) {
  EngineParameters& engine = parameters.engine;
  return {
      "Features",
      {{"--speculative-tokens", "drafted for each request in a step; 0: none",
        whole(engine.speculative_tokens, 0, 64)},
       {"--acceptance-rate",
        "of a drafted token, when all before it were accepted",
        real(parameters.scheduler.acceptance_rate, 0, 1)},
       {"--lora-adapters", "requests are for one of so many; 0: no LoRA",
        whole(engine.lora_adapters, 0, 1000)},
       {"--kv-transfer",
        "prompts are computed by other engines, and fetched through NIXL",
        turn(engine.kv_transfer)},
       {"--kv-transfer-bandwidth", "of that, gigabytes a second",
        real(engine.kv_transfer_bandwidth, 0.001, 1e6)},
       {"--kv-offload",
        "KV blocks that the GPU gives up are kept in the CPU's memory, by the "
        "offloading connector (native), the simple one, or both",
        choice(engine.kv_offload, kOffloads)},
       {"--kv-offload-size", "of that memory for each engine, gigabytes",
        real(engine.kv_offload_size, 1e-3, 1e6)},
       {"--kv-offload-bandwidth", "to it and from it, gigabytes a second",
        real(engine.kv_offload_bandwidth, 0.001, 1e6)},
       {"--kv-offload-store-threshold",
        "native: store what was asked for so often; 0 and 1: everything",
        whole(engine.kv_offload_store_threshold, 0, 1000)},
       {"--weight-updates",
        "seconds between two updates of the weights by a trainer, for which "
        "the engines sleep; 0: none",
        real(engine.weight_update_interval, 0, kYear)},
       {"--kv-cache-metrics", "sample how long KV blocks stay",
        turn(engine.kv_cache_metrics)},
       {"--kv-cache-metrics-sample", "the part of the blocks that is sampled",
        real(engine.kv_cache_metrics_sample, 1e-6, 1)},
       {"--native-histograms",
        "latencies in exponential buckets too, for who asks for protobuf",
        turn(engine.native_histograms)},
       {"--exemplars",
        "each request comes with a trace, and latencies show the newest of "
        "each bucket, to who asks for OpenMetrics or protobuf",
        turn(engine.exemplars)},
       {"--cudagraph-metrics", "log a table of how steps were padded",
        turn(engine.cudagraph_metrics)},
       {"--enable-mfu-metrics", "estimated FLOPs and bytes",
        turn(engine.enable_mfu_metrics)},
       {"--enable-logging-iteration-details", "a log line for each step",
        turn(engine.enable_logging_iteration_details)},
       {"--compute-nans-in-logits", "count requests with NaN logits",
        turn(engine.compute_nans_in_logits)}}};
}

absl::Status not_allowed(std::string_view name, std::string_view value,
                         std::string_view allowed) {
  name.remove_prefix(std::min(name.find_first_not_of('-'), name.size()));
  return absl::InvalidArgumentError(
      fmt::format("{} = {}; allowed: {}", name, value, allowed));
}

absl::Status check_ranges(const std::vector<FlagGroup>& groups) {
  for (const FlagGroup& group : groups) {
    for (const Flag& flag : group.flags) {
      if (flag.value.fits == nullptr || flag.value.fits()) continue;
      return not_allowed(flag.name, flag.value.preset, flag.value.allowed);
    }
  }
  return absl::OkStatus();
}

// Parameters that are allowed, but not beside each other.
absl::Status check_together(const Parameters& parameters) {
  const EngineParameters& engine = parameters.engine;
  const WorkloadParameters& workload = parameters.workload;
  if (engine.kv_cache_metrics &&
      engine.num_gpu_blocks == KvBlockPool::kUnlimited) {
    return not_allowed("kv-cache-metrics", "on",
                       "only with a limit on num-gpu-blocks, as without one "
                       "no block is ever evicted");
  }
  if (engine.kv_offload != kOffloadNone &&
      engine.num_gpu_blocks == KvBlockPool::kUnlimited) {
    return not_allowed("kv-offload", engine.kv_offload,
                       "only with a limit on num-gpu-blocks, as without one "
                       "no block is ever given up");
  }
  if (engine.enable_expert_parallel && engine.shape.num_moe_layers == 0) {
    return not_allowed("enable-expert-parallel", "on",
                       "only for a model with experts");
  }
  if (workload.concurrency == 0 && workload.turns > 1) {
    return not_allowed("turns", fmt::format("{}", workload.turns),
                       "1 without concurrency, whose clients have the "
                       "conversations");
  }
  if (workload.concurrency == 0 && workload.think_time > 0.0) {
    return not_allowed("think-time", fmt::format("{}", workload.think_time),
                       "0 without concurrency, whose clients think");
  }
  if (workload.corrupted_share > 0.0 && !engine.compute_nans_in_logits) {
    return not_allowed("corrupted-share",
                       fmt::format("{}", workload.corrupted_share),
                       "0 without compute-nans-in-logits, which finds them");
  }
  return absl::OkStatus();
}

}  // namespace

EngineParameters::EngineParameters() : shape(shape_of(kModels[0])) {}

std::vector<FlagGroup> workload_flags(WorkloadParameters& workload) {
  return {
      {"Workload of its own, without --trace",
       {{"--rate", "requests per second, as Poisson has them",
         real(workload.rate, 1e-6, 1e6)},
        {"--concurrency",
         "instead of a rate, so many clients, each of whom waits for the "
         "answer before asking again; 0: none",
         whole(workload.concurrency, 0, 1'000'000)},
        {"--think-time", "seconds between answer and next prompt, mean",
         real(workload.think_time, 0, kYear)},
        {"--turns",
         "requests of a client's conversation: each prompt is all that was "
         "said and something new",
         whole(workload.turns, 1, 100'000)},
        {"--prompt-tokens", "mean length of a prompt, or of what a turn adds",
         real(workload.prompt_tokens, 1, 1e6)},
        {"--prompt-spread", "standard deviation of its logarithm",
         real(workload.prompt_spread, 0, 3)},
        {"--output-tokens", "mean length of an output",
         real(workload.output_tokens, 1, 1e6)},
        {"--output-spread", "standard deviation of its logarithm",
         real(workload.output_spread, 0, 3)},
        {"--long-prompt-share", "the part of the prompts that is long",
         real(workload.long_prompt_share, 0, 1)},
        {"--long-prompt-tokens", "mean length of those",
         real(workload.long_prompt_tokens, 1, 1e6)},
        {"--prefix-share",
         "the part of each prompt, 0 to 1, that is one of the shared texts",
         real(workload.prefix_share, 0, 1)},
        {"--prefix-groups", "how many shared texts there are",
         whole(workload.prefix_groups, 1, kMany)}}},
      {"Clients, of a trace too",
       {{"--routing", "to which engine: least-loaded, round-robin, or sticky",
         choice(workload.routing, kRoutings)},
        {"--length-share", "of the requests, that end at their max_tokens",
         real(workload.length_share, 0, 1)},
        {"--patience",
         "seconds until a client gives up, of arrival to the last token; 0: "
         "never",
         real(workload.patience, 0, kYear)},
        {"--corrupted-share", "of the requests, that have NaN logits",
         real(workload.corrupted_share, 0, 1)}}}};
}

std::vector<FlagGroup> engine_flags(Parameters& parameters) {
  return {device_flags(parameters.engine), scheduler_flags(parameters),
          feature_flags(parameters)};
}

absl::Status validate(const Parameters& parameters) {
  Parameters copy = parameters;  // what flags bind to can be written
  if (absl::Status status = check_ranges(engine_flags(copy)); !status.ok()) {
    return status;
  }
  if (absl::Status status = check_ranges(workload_flags(copy.workload));
      !status.ok()) {
    return status;
  }
  if (absl::Status status = check_together(parameters); !status.ok()) {
    return status;
  }
  return StepCostModel::create(parameters.engine).status();
}

absl::Status choose_model(const std::string& model, EngineParameters& engine) {
  engine.model = model;
  for (const BuiltInModel& known : kModels) {
    if (known.name != model) continue;
    engine.shape = shape_of(known);
    return absl::OkStatus();
  }
#ifdef VLLM_METRICS_SIM_MODEL_CONFIG
  auto shape = read_hf_config(model);
  if (shape.ok()) {
    engine.shape = *std::move(shape);
    return absl::OkStatus();
  }
  return absl::Status(
      shape.status().code(),
      fmt::format("model = {}; allowed: dense-8b, dense-70b, moe-30b, or a "
                  "config.json: {}",
                  model,
                  std::string_view(shape.status().message().data(),
                                   shape.status().message().size())));
#else
  return not_allowed("model", model,
                     "dense-8b, dense-70b, moe-30b; a config.json needs a "
                     "build with VLLM_METRICS_MODEL_CONFIG");
#endif
}

}  // namespace vllm_metrics::sim
