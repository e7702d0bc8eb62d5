#include "src/tools/replay/stats_fields.h"

#include <algorithm>

#include "src/tools/replay/feature_fields.h"

namespace vllm_metrics::replay {
namespace {

constexpr Field<CacheStats> kCacheFields[] = {
    field<CacheStats, &CacheStats::reset>("reset"),
    field<CacheStats, &CacheStats::requests>("requests"),
    field<CacheStats, &CacheStats::queries>("queries"),
    field<CacheStats, &CacheStats::hits>("hits"),
};

using Prefix = PrefixCacheStats;
constexpr Field<Prefix> kPrefixCacheFields[] = {
    field<Prefix, &Prefix::reset>("reset"),
    field<Prefix, &Prefix::requests>("requests"),
    field<Prefix, &Prefix::queries>("queries"),
    field<Prefix, &Prefix::hits>("hits"),
    field<Prefix, &Prefix::preempted_requests>("preempted_requests"),
    field<Prefix, &Prefix::preempted_queries>("preempted_queries"),
    field<Prefix, &Prefix::preempted_hits>("preempted_hits"),
};

template <auto kMember>
void read_state(const JsonValue& value, TraceScheduler& out) {
  read_value(value, out.stats.*kMember);
}

// Null is absent.
template <auto kMember>
void read_nullable_state(const JsonValue& value, TraceScheduler& out) {
  if (!value.json().is_null()) read_value(value, out.stats.*kMember);
}

constexpr Field<TraceScheduler> kKvCacheUsageField = {
    "kv_cache_usage", [](const JsonValue& value, TraceScheduler& out) {
      read_any_double(value, out.stats.kv_cache_usage);
    }};

using State = SchedulerStats;
using Scheduler = TraceScheduler;
constexpr Field<Scheduler> kSchedulerFields[] = {
    {"num_running_reqs", read_state<&State::num_running_reqs>},
    {"num_waiting_reqs", read_state<&State::num_waiting_reqs>},
    {"num_skipped_waiting_reqs", read_state<&State::num_skipped_waiting_reqs>},
    {"step_counter", read_state<&State::step_counter>},
    {"current_wave", read_state<&State::current_wave>},
    kKvCacheUsageField,
    {"prefix_cache_stats", read_state<&State::prefix_cache_stats>},
    {"connector_prefix_cache_stats",
     read_state<&State::connector_prefix_cache_stats>},
    {"kv_cache_eviction_events",
     read_nullable_state<&State::kv_cache_eviction_events>},
    nullable_field<Scheduler, &Scheduler::kv_drain>("kv_drain"),
    {"spec_decoding_stats", read_state<&State::spec_decoding_stats>},
    field<Scheduler, &Scheduler::kv_connector_stats>("kv_connector_stats"),
    nullable_field<Scheduler, &Scheduler::waiting_lora_adapters>(
        "waiting_lora_adapters"),
    nullable_field<Scheduler, &Scheduler::running_lora_adapters>(
        "running_lora_adapters"),
    {"cudagraph_stats", read_cudagraph_stats},
    {"perf_stats", read_perf_stats},
    {"iteration_details", read_state<&State::iteration_details>},
};

using Prompt = PromptTokenStats;
constexpr Field<Prompt> kPromptFields[] = {
    field<Prompt, &Prompt::computed>("computed"),
    field<Prompt, &Prompt::local_cache_hit>("local_cache_hit"),
    field<Prompt, &Prompt::external_kv_transfer>("external_kv_transfer"),
    field<Prompt, &Prompt::cached_tokens>("cached_tokens"),
    field<Prompt, &Prompt::total>("total"),
};

// A phase that never happened is null.
using Finished = FinishedRequestStats;
constexpr Field<Finished> kFinishedFields[] = {
    field<Finished, &Finished::finish_reason>("finish_reason"),
    any_double_field<Finished, &Finished::e2e_latency>("e2e_latency"),
    field<Finished, &Finished::num_prompt_tokens>("num_prompt_tokens"),
    field<Finished, &Finished::num_generation_tokens>("num_generation_tokens"),
    field<Finished, &Finished::max_tokens_param>("max_tokens_param"),
    any_double_field<Finished, &Finished::queued_time>("queued_time"),
    any_double_field<Finished, &Finished::prefill_time>("prefill_time"),
    any_double_field<Finished, &Finished::inference_time>("inference_time"),
    any_double_field<Finished, &Finished::decode_time>("decode_time"),
    any_double_field<Finished, &Finished::mean_time_per_output_token>(
        "mean_time_per_output_token"),
    field<Finished, &Finished::is_corrupted>("is_corrupted"),
    field<Finished, &Finished::num_cached_tokens>("num_cached_tokens"),
    field<Finished, &Finished::num_preemptions>("num_preemptions"),
};

template <std::vector<double> IterationStats::*kMember>
void read_latencies(const JsonValue& value, IterationStats& out) {
  if (!value.json().is_array()) return value.refuse("a list");
  std::vector<double>& latencies = out.*kMember;
  latencies.resize(value.json().size());
  for (std::size_t i = 0; i < latencies.size(); ++i) {
    read_any_double(value.element(i), latencies[i]);
  }
}

using Iteration = IterationStats;
constexpr Field<Iteration> kIterationFields[] = {
    field<Iteration, &Iteration::num_generation_tokens>(
        "num_generation_tokens"),
    field<Iteration, &Iteration::num_preempted_reqs>("num_preempted_reqs"),
    field<Iteration, &Iteration::num_corrupted_reqs>("num_corrupted_reqs"),
    field<Iteration, &Iteration::prompt_token_stats>("prompt_token_stats"),
    field<Iteration, &Iteration::max_num_generation_tokens_iter>(
        "max_num_generation_tokens_iter"),
    field<Iteration, &Iteration::n_params_iter>("n_params_iter"),
    {"time_to_first_tokens_iter",
     read_latencies<&Iteration::time_to_first_tokens_iter>},
    {"inter_token_latencies_iter",
     read_latencies<&Iteration::inter_token_latencies_iter>},
    field<Iteration, &Iteration::finished_requests>("finished_requests"),
};

}  // namespace

void read_value(const JsonValue& value, CacheStats& out) {
  read_object(value, out, kCacheFields);
}

void read_value(const JsonValue& value, PrefixCacheStats& out) {
  read_object(value, out, kPrefixCacheFields);
}

void read_value(const JsonValue& value, TraceScheduler& out) {
  read_object(value, out, kSchedulerFields);
}

void read_value(const JsonValue& value, IterationStats& out) {
  read_object(value, out, kIterationFields);
}

void read_value(const JsonValue& value, PromptTokenStats& out) {
  read_object(value, out, kPromptFields);
}

void read_value(const JsonValue& value, FinishedRequestStats& out) {
  read_object(value, out, kFinishedFields);
}

void read_value(const JsonValue& value, FinishReason& out) {
  std::string name;
  if (value.json().is_string()) name = value.json().get<std::string>();
  const auto found =
      std::find(kFinishReasonNames.begin(), kFinishReasonNames.end(), name);
  if (found == kFinishReasonNames.end()) {
    return value.refuse("stop, length, abort, error or repetition");
  }
  out = static_cast<FinishReason>(found - kFinishReasonNames.begin());
}

}  // namespace vllm_metrics::replay
