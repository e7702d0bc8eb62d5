#include "src/tools/doctor/levers.h"

#include <string_view>

namespace vllm_metrics::doctor {
namespace {

constexpr Lever kFp8Cache = {
    "--kv-cache-dtype", "auto -> fp8",
    "KV cache usage halves, inter-token latency falls, throughput rises"};
constexpr Lever kMoreMemory = {
    "--gpu-memory-utilization", "up",
    "KV cache usage falls, preemptions vanish, prefix hit rate rises"};
constexpr Lever kFewerSequences = {
    "--max-num-active-seqs, --max-num-seqs", "down",
    "preemptions vanish, inter-token latency falls, queue time rises"};
constexpr Lever kMoreEngines = {
    "engines (data-parallel-size, replicas)", "up",
    "waiting and queue time fall; the figures of an engine stay"};
constexpr Lever kSmallerBudget = {
    "--max-num-batched-tokens", "down",
    "inter-token latency p99 falls; tokens per step fall, TTFT rises"};

constexpr Lever kQueueSaturated[] = {kFp8Cache, kMoreMemory, kMoreEngines};
constexpr Lever kFalseSaturation[] = {
    {"--max-num-seqs, --max-num-active-seqs", "up",
     "running rises, waiting and queue time fall, KV cache usage rises"}};
constexpr Lever kLongPrompts[] = {
    {"--max-num-batched-tokens", "up",
     "tokens per step rise, prefill time and TTFT fall; inter-token latency "
     "p99 rises"},
    {"--enable-prefix-caching, routing by prefix", "on",
     "prefix hit rate rises, prefill time falls"},
    {"--long-prefill-token-threshold", "down",
     "short requests' TTFT p99 falls, long ones' rises slightly"}};
constexpr Lever kPrefillInterference[] = {
    kSmallerBudget,
    {"--long-prefill-token-threshold", "down",
     "inter-token latency p99 falls, long requests' TTFT rises slightly"}};
constexpr Lever kBandwidthBound[] = {
    kFp8Cache,
    kFewerSequences,
    {"--speculative-config", "on",
     "time per output token falls when more than 0.6 of the drafts are "
     "accepted"},
    kMoreEngines};
constexpr Lever kPreemptionStorm[] = {kFewerSequences,
                                      kFp8Cache,
                                      kMoreMemory,
                                      {"max_tokens of the requests", "down",
                                       "KV cache usage and preemptions fall"}};
constexpr Lever kCacheThrashing[] = {
    kMoreMemory,
    kFp8Cache,
    {"engines, routed by session", "up",
     "blocks stay idle longer before they are evicted, hit rate rises"}};
constexpr Lever kComputeBound[] = {
    {"--enable-prefix-caching, routing by prefix", "on",
     "computed prompt tokens and prefill time fall"},
    {"--quantization", "fp8 (W8A8)",
     "prefill time falls, tensor activity falls"},
    {"prefill and decode on engines of their own", "on",
     "inter-token latency no longer rises with prompts"},
    kMoreEngines};
constexpr Lever kScatteredSessions[] = {
    {"routing in front of the engines", "by prefix hash or session",
     "prefix hit rate rises, prefill time and TTFT fall"}};
constexpr Lever kClientsGiveUp[] = {
    {"what makes the queue (see the other findings)", "first",
     "queue time and TTFT fall, then the share of aborted requests"},
    kMoreEngines,
    {"time-out of the clients", "up", "the share of aborted requests falls"}};

struct OfCase {
  std::string_view id;
  std::span<const Lever> levers;
};
constexpr OfCase kCases[] = {
    {"queue-saturated", kQueueSaturated},
    {"false-saturation", kFalseSaturation},
    {"long-prompts", kLongPrompts},
    {"prefill-interference", kPrefillInterference},
    {"bandwidth-bound", kBandwidthBound},
    {"preemption-storm", kPreemptionStorm},
    {"cache-thrashing", kCacheThrashing},
    {"compute-bound", kComputeBound},
    {"scattered-sessions", kScatteredSessions},
    {"clients-give-up", kClientsGiveUp},
};

}  // namespace

std::span<const Lever> levers_of(std::string_view id) {
  for (const OfCase& one : kCases) {
    if (one.id == id) return one.levers;
  }
  return {};
}

}  // namespace vllm_metrics::doctor
