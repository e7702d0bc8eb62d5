#include "src/tools/sim/scenario.h"

#include <fmt/format.h>

#include <array>
#include <string>

namespace vllm_metrics::sim {
namespace {

// Each is at its evidence after some 30 virtual seconds, and stays there.

void set_healthy(Parameters& p) {
  p.workload = {.rate = 10.0,
                .prompt_tokens = 800.0,
                .output_tokens = 200.0,
                .prefix_share = 0.6};
}

void set_idle(Parameters& p) { p.workload.rate = 1e-6; }

// More is asked for than the KV cache holds: it is full, and the queue grows.
// Outputs are short beside the prompts, so that few outgrow it.
void set_queue_saturated(Parameters& p) {
  p.engine.num_gpu_blocks = 1500;
  p.workload = {.rate = 12.0,
                .prompt_tokens = 1200.0,
                .prompt_spread = 0.1,
                .output_tokens = 300.0,
                .output_spread = 0.1,
                .prefix_share = 0.0};
}

// Places are few, while most of the KV cache is free.
void set_false_saturation(Parameters& p) {
  p.scheduler.max_num_seqs = 32;
  p.engine.num_gpu_blocks = 8500;
  p.workload = {.rate = 9.0,
                .prompt_tokens = 1200.0,
                .output_tokens = 600.0,
                .output_spread = 0.5};
}

// 16K prompts, which a small budget computes in many chunks.
void set_long_prompts(Parameters& p) {
  p.scheduler.max_num_batched_tokens = 1024;
  p.workload = {.rate = 0.5,
                .prompt_tokens = 16384.0,
                .prompt_spread = 0.2,
                .output_tokens = 60.0,
                .prefix_share = 0.0};
}

// Short chats, and among them prompts that take a step of their own.
void set_prefill_interference(Parameters& p) {
  p.workload = {.rate = 6.0,
                .prompt_tokens = 300.0,
                .prompt_spread = 0.15,
                .output_tokens = 200.0,
                .long_prompt_share = 0.42,
                .long_prompt_tokens = 4700.0,
                .prefix_share = 0.0};
}

// Many long contexts decode at once, on a device whose memory is slow for its
// size.
void set_bandwidth_bound(Parameters& p) {
  p.engine.device = "L40S";
  p.engine.gpu_memory_utilization = 0.95;
  p.workload = {.concurrency = 44,
                .prompt_tokens = 3000.0,
                .prompt_spread = 0.3,
                .output_tokens = 1200.0,
                .output_spread = 0.3};
}

// Long prompts, short answers: nearly all of it is arithmetic.
void set_compute_bound(Parameters& p) {
  p.scheduler.max_num_batched_tokens = 16384;
  p.workload = {.rate = 11.0,
                .prompt_tokens = 4000.0,
                .prompt_spread = 0.4,
                .output_tokens = 2.0,
                .output_spread = 0.3,
                .prefix_share = 0.1};
}

// Outputs are long, so that what was admitted outgrows the KV cache.
void set_preemption_storm(Parameters& p) {
  p.engine.num_gpu_blocks = 3000;
  p.workload = {.rate = 7.0,
                .prompt_tokens = 400.0,
                .output_tokens = 1200.0,
                .output_spread = 0.4};
}

// Conversations go on after their blocks have been given to others. Steps are
// small, so that what is computed again makes no stream wait.
void set_cache_thrashing(Parameters& p) {
  p.scheduler.max_num_batched_tokens = 1024;
  p.engine.num_gpu_blocks = 2200;
  p.workload = {.concurrency = 80,
                .think_time = 30.0,
                .turns = 8,
                .prompt_tokens = 700.0,
                .prompt_spread = 0.4,
                .output_tokens = 80.0,
                .prefix_share = 0.0};
}

// Conversations stay with their engine, until they are sent round in turn.
void set_scattered_sessions(Parameters& p) {
  p.engine.engines = 8;
  p.workload = {.routing = std::string(kSticky),
                .concurrency = 160,
                .think_time = 12.0,
                .turns = 6,
                .prompt_tokens = 600.0,
                .prompt_spread = 0.4,
                .output_tokens = 120.0,
                .prefix_share = 0.0};
}

// More is asked for than can be served, and nobody waits for long.
void set_clients_give_up(Parameters& p) {
  p.scheduler.max_num_seqs = 48;
  p.workload = {.rate = 14.0,
                .prompt_tokens = 1200.0,
                .output_tokens = 400.0,
                .patience = 20.0};
}

constexpr auto kScenarios = std::to_array<Scenario>({
    {"healthy", "nothing stands out", set_healthy},
    {"idle", "nobody asks", set_idle},
    {"queue-saturated", "the KV cache is full and the queue grows",
     set_queue_saturated},
    {"false-saturation",
     "the queue grows while most of the KV cache is free: max-num-seqs",
     set_false_saturation},
    {"long-prompts",
     "TTFT is prefill: 16K prompts in chunks of 1K, none of it cached",
     set_long_prompts},
    {"prefill-interference", "ITL p99 is far above its mean",
     set_prefill_interference},
    {"bandwidth-bound", "decode is nearly all time, device memory is busy",
     set_bandwidth_bound},
    {"compute-bound",
     "prefill is nearly all time, steps at their token budget, tensor cores "
     "are busy",
     set_compute_bound},
    {"preemption-storm", "the KV cache is full and preemptions go on",
     set_preemption_storm},
    {"cache-thrashing",
     "blocks are evicted before a client's next turn, and the hit rate is low",
     set_cache_thrashing},
    {"scattered-sessions",
     "the hit rate falls after a minute, when engines share conversations",
     set_scattered_sessions,
     [](Parameters& p) { p.workload.routing = kRoundRobin; },
     60 * kTicksPerSecond},
    {"clients-give-up", "the share of aborted requests is high",
     set_clients_give_up},
});

}  // namespace

Parameters Scenario::parameters() const {
  Parameters out;
  out.engine.kv_cache_metrics = true;
  out.engine.kv_cache_metrics_sample = 0.05;
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
