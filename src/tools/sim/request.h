#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/tools/sim/virtual_time.h"
#include "vllm_metrics/stats/finish_reason.h"
#include "vllm_metrics/stats/iteration_stats.h"
#include "vllm_metrics/stats/request_state_stats.h"

namespace vllm_metrics::sim {

// What a client asks for, and how it will end: a line of a workload.
struct RequestSpec {
  Ticks arrival = 0;               // at the front end
  std::int64_t prompt_tokens = 1;  // 1 or more
  std::int64_t output_tokens = 1;  // 1 or more, the end included
  std::optional<std::int64_t> max_tokens;
  FinishReason finish_reason = FinishReason::kStop;

  // Which text the prompt begins with: prefix[i] stands for the first i + 1
  // chunks of `chunk_tokens` tokens (the last may be cut short by the prompt's
  // end). Equal values are equal text. Tokens past the list are this request's
  // alone.
  std::vector<std::uint64_t> prefix;
  std::int64_t chunk_tokens = 512;
  // What the list stands for, of prompt and output; unset: the prompt.
  std::optional<std::int64_t> known_tokens;

  Ticks give_up = kNever;    // when its client goes away
  bool corrupted = false;    // its logits have NaNs
  std::string lora;          // its adapter; empty: none
  std::int64_t client = -1;  // of a closed loop
};

using BlockId = std::uint32_t;

// A request inside the engine core.
struct Request {
  std::int64_t id = 0;
  RequestSpec spec;

  // Kept by the scheduler. Tokens, from the first of the prompt.
  std::int64_t num_output_tokens = 0;
  std::int64_t num_computed_tokens = 0;   // in the KV cache
  std::int64_t num_scheduled_tokens = 0;  // computed by the running step
  std::int64_t num_drafted_tokens = 0;    // of them, drafted
  std::int64_t num_arriving_tokens = 0;   // there at kv_arrival
  Ticks kv_arrival = kNever;              // of KV from elsewhere
  bool was_scheduled = false;
  std::vector<BlockId> blocks;          // its KV cache
  std::size_t num_findable_blocks = 0;  // of these, in the prefix cache
  std::int64_t num_preemptions = 0;
  std::optional<PrefillStats> prefill_stats;  // since the first admission
  std::vector<EngineCoreEvent> events;        // since the last output

  // Kept by the front end.
  RequestStateStats stats;

  std::int64_t num_tokens() const {
    return spec.prompt_tokens + num_output_tokens;
  }

  bool is_finished() const { return num_output_tokens >= spec.output_tokens; }

  // The content of a full block and of all blocks before it, as one number.
  std::uint64_t block_hash(std::int64_t index, std::int64_t block_size) const;
};

}  // namespace vllm_metrics::sim
