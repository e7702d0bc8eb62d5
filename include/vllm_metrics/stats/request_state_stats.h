#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "vllm_metrics/stats/lora_stats.h"
#include "vllm_metrics/stats/preemption_times.h"
#include "vllm_metrics/stats/request_id.h"
#include "vllm_metrics/stats/trace_context.h"

namespace vllm_metrics::inline v0 {

// A request with n > 1: several sequences from one prompt, each an engine
// request of its own. Metrics of the whole are taken when the last one ends.
//
// Thread-safety: none; all children of a parent belong to one front end.
// Definition: vLLM ParentRequest. vLLM v1/engine/parallel_sampling.py.
class ParentRequest {
 public:
  // `n`: how many children there are; 1 or more.
  explicit ParentRequest(std::int64_t n) noexcept : n_(n), children_left_(n) {}

  std::int64_t n() const noexcept { return n_; }
  std::int64_t max_num_generation_tokens() const noexcept {
    return max_num_generation_tokens_;
  }

  // A child has ended with this many tokens. True when it was the last.
  bool child_ended(std::int64_t num_generation_tokens) noexcept {
    if (num_generation_tokens > max_num_generation_tokens_)
      max_num_generation_tokens_ = num_generation_tokens;
    return --children_left_ <= 0;
  }

 private:
  std::int64_t n_;
  std::int64_t children_left_;
  std::int64_t max_num_generation_tokens_ = 0;
};

// What is known of one request between its arrival and its end. The engine
// keeps it beside the request, fills the first part, and hands it to
// IterationStats with each output.
//
// Two clocks: "wall" is the front end's (seconds since 1970), "engine" the
// engine core's monotonic one (seconds). A stamp that has not happened is
// unset, which is not the same as 0.
// Definition: vLLM RequestStateStats. vLLM v1/metrics/stats.py.
struct RequestStateStats {
  // Filled by the engine when the request arrives.
  double arrival_time = 0.0;           // wall
  std::int64_t num_prompt_tokens = 0;  // tokens
  // The request's max_tokens, if it gave one.
  std::optional<std::int64_t> max_tokens_param = {};
  std::shared_ptr<ParentRequest> parent = {};  // null for n = 1
  std::string lora_name = {};                  // its LoRA adapter; empty: none
  // Of the engine it runs on; null: adapters are not followed.
  LoraRequestStates* lora = nullptr;

  // Kept by IterationStats; what every output touches lies together.
  LoraRequestStates::Phase lora_phase = LoraRequestStates::Phase::kNone;
  bool is_prefilling = true;  // no output yet
  bool is_corrupted = false;  // an output had NaN logits
  std::int64_t num_generation_tokens = 0;
  // Engine; step of the latest output.
  std::optional<double> last_token_ts = {};
  // Of the prompt; from the first output's prefill stats.
  std::int64_t num_cached_tokens = 0;
  std::int64_t num_preemptions = 0;         // PREEMPTED events of this request
  std::optional<double> queued_ts = {};     // engine; the latest QUEUED event
  std::optional<double> scheduled_ts = {};  // engine; the first SCHEDULED event
  // Engine; step of the first output.
  std::optional<double> first_token_ts = {};
  // Seconds, wall: arrival to the first output.
  double first_token_latency = 0.0;

  // Filled by the engine when the request arrives, e.g. from its `traceparent`
  // header (parse_traceparent).
  TraceContext trace = {};
  // Filled by the engine, where exemplars and spans are to name the request.
  RequestId request_id = {};

  // Kept by IterationStats.
  PreemptionTimes preempted_ts = {};  // engine
};

}  // namespace vllm_metrics::inline v0
