#include "src/tools/replay/stats_fields.h"

#include <algorithm>

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

using Perf = PerfStats;
constexpr Field<Perf> kPerfFields[] = {
    field<Perf, &Perf::num_flops_per_gpu>("num_flops_per_gpu"),
    field<Perf, &Perf::num_read_bytes_per_gpu>("num_read_bytes_per_gpu"),
    field<Perf, &Perf::num_write_bytes_per_gpu>("num_write_bytes_per_gpu"),
    unsupported_field<Perf>("new"),
    unsupported_field<Perf>("cached"),
};

using Scheduler = SchedulerStats;
constexpr Field<Scheduler> kSchedulerFields[] = {
    field<Scheduler, &Scheduler::num_running_reqs>("num_running_reqs"),
    field<Scheduler, &Scheduler::num_waiting_reqs>("num_waiting_reqs"),
    field<Scheduler, &Scheduler::num_skipped_waiting_reqs>(
        "num_skipped_waiting_reqs"),
    field<Scheduler, &Scheduler::step_counter>("step_counter"),
    field<Scheduler, &Scheduler::current_wave>("current_wave"),
    any_double_field<Scheduler, &Scheduler::kv_cache_usage>("kv_cache_usage"),
    field<Scheduler, &Scheduler::prefix_cache_stats>("prefix_cache_stats"),
    field<Scheduler, &Scheduler::connector_prefix_cache_stats>(
        "connector_prefix_cache_stats"),
    field<Scheduler, &Scheduler::perf_stats>("perf_stats"),
    unsupported_field<Scheduler>("kv_cache_eviction_events"),
    unsupported_field<Scheduler>("kv_drain"),
    unsupported_field<Scheduler>("spec_decoding_stats"),
    unsupported_field<Scheduler>("kv_connector_stats"),
    unsupported_field<Scheduler>("waiting_lora_adapters"),
    unsupported_field<Scheduler>("running_lora_adapters"),
    unsupported_field<Scheduler>("cudagraph_stats"),
    unsupported_field<Scheduler>("iteration_details"),
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
constexpr Field<IterationStats> latencies_field(std::string_view name) {
  return {name, [](const JsonValue& value, IterationStats& out) {
            if (!value.json().is_array()) return value.refuse("a list");
            std::vector<double>& latencies = out.*kMember;
            latencies.resize(value.json().size());
            for (std::size_t i = 0; i < latencies.size(); ++i) {
              read_any_double(value.element(i), latencies[i]);
            }
          }};
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
    latencies_field<&Iteration::time_to_first_tokens_iter>(
        "time_to_first_tokens_iter"),
    latencies_field<&Iteration::inter_token_latencies_iter>(
        "inter_token_latencies_iter"),
    field<Iteration, &Iteration::finished_requests>("finished_requests"),
};

}  // namespace

void read_value(const JsonValue& value, CacheStats& out) {
  read_object(value, out, kCacheFields);
}

void read_value(const JsonValue& value, PrefixCacheStats& out) {
  read_object(value, out, kPrefixCacheFields);
}

void read_value(const JsonValue& value, PerfStats& out) {
  read_object(value, out, kPerfFields);
}

void read_value(const JsonValue& value, SchedulerStats& out) {
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
