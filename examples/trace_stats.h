// Trace format 1, written: the members of the structs that an engine reports.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trace_line.h"
#include "vllm_metrics/loggers/options.h"
#include "vllm_metrics/stats/iteration_stats.h"
#include "vllm_metrics/stats/nixl_stats.h"
#include "vllm_metrics/stats/scheduler_stats.h"

// A copy of SchedulerStats that outlives the step: what the struct only points
// to is copied too. Copying into a used one reuses its storage.
//
// Left behind, as the format has no place for it: the statistics of other KV
// connectors than NIXL, and the parts of an MFU estimate.
class RecordedScheduler {
 public:
  using Counts = std::vector<TraceLine::NamedCount>;

  void copy(const vllm_metrics::SchedulerStats& from) {
    stats = from;
    copy(from.waiting_lora_adapters, waiting_lora_adapters);
    copy(from.running_lora_adapters, running_lora_adapters);
    if (from.cudagraph_stats) runtime_mode = from.cudagraph_stats->runtime_mode;
    has_nixl = from.kv_connector_stats != nullptr &&
               from.kv_connector_stats->connector() == nixl.connector();
    if (has_nixl) {
      nixl =
          static_cast<const vllm_metrics::NixlStats&>(*from.kv_connector_stats);
    }
    // They point to what the step had.
    stats.waiting_lora_adapters.clear();
    stats.running_lora_adapters.clear();
    if (stats.cudagraph_stats) stats.cudagraph_stats->runtime_mode = {};
    stats.kv_connector_stats = nullptr;
    if (stats.perf_stats) stats.perf_stats->breakdown = nullptr;
  }

  vllm_metrics::SchedulerStats stats;
  Counts waiting_lora_adapters;
  Counts running_lora_adapters;
  std::string runtime_mode;  // of stats.cudagraph_stats
  bool has_nixl = false;
  vllm_metrics::NixlStats nixl;  // stats.kv_connector_stats

 private:
  static void copy(const std::vector<vllm_metrics::LoraAdapterCount>& from,
                   Counts& to) {
    to.resize(from.size());
    for (std::size_t i = 0; i < from.size(); ++i) {
      to[i].first = from[i].name;
      to[i].second = from[i].num_requests;
    }
  }
};

inline void write_members(TraceLine& line,
                          const vllm_metrics::CudaGraphConfig& config) {
  line.member("mode", config.mode);
  line.member("capture_sizes", config.capture_sizes);
}

inline void write_members(TraceLine& line,
                          const vllm_metrics::CacheStats& stats) {
  line.member("reset", stats.reset);
  line.member("requests", stats.requests);
  line.member("queries", stats.queries);
  line.member("hits", stats.hits);
}

inline void write_members(TraceLine& line,
                          const vllm_metrics::PrefixCacheStats& stats) {
  write_members(line, static_cast<const vllm_metrics::CacheStats&>(stats));
  line.member("preempted_requests", stats.preempted_requests);
  line.member("preempted_queries", stats.preempted_queries);
  line.member("preempted_hits", stats.preempted_hits);
}

inline void write_members(TraceLine& line,
                          const vllm_metrics::PerfStats& stats) {
  line.member("num_flops_per_gpu", stats.num_flops_per_gpu);
  line.member("num_read_bytes_per_gpu", stats.num_read_bytes_per_gpu);
  line.member("num_write_bytes_per_gpu", stats.num_write_bytes_per_gpu);
}

inline void write_members(TraceLine& line,
                          const vllm_metrics::KvCacheEvictionEvent& event) {
  const auto gaps = event.reuse_gaps_seconds();
  line.member("lifetime_seconds", event.lifetime_seconds);
  line.member("idle_seconds", event.idle_seconds);
  line.member("reuse_gaps_seconds",
              std::vector<double>(gaps.begin(), gaps.end()));
}

inline void write_members(TraceLine& line,
                          const vllm_metrics::SpecDecodingStats& stats) {
  line.member("num_spec_tokens", stats.num_spec_tokens);
  line.member("num_drafts", stats.num_drafts);
  line.member("num_draft_tokens", stats.num_draft_tokens);
  line.member("num_accepted_tokens", stats.num_accepted_tokens);
  line.member("num_accepted_tokens_per_pos", stats.num_accepted_tokens_per_pos);
}

inline void write_members(TraceLine& line,
                          const vllm_metrics::NixlStats& stats) {
  line.member("transfer_duration", stats.transfer_duration);
  line.member("post_duration", stats.post_duration);
  line.member("bytes_transferred", stats.bytes_transferred);
  line.member("num_descriptors", stats.num_descriptors);
  line.member("num_failed_transfers", stats.num_failed_transfers);
  line.member("num_failed_notifications", stats.num_failed_notifications);
  line.member("num_kv_expired_reqs", stats.num_kv_expired_reqs);
}

inline void write_members(TraceLine& line,
                          const vllm_metrics::IterationDetails& details) {
  line.member("iteration_index", details.iteration_index);
  line.member("num_ctx_requests", details.num_ctx_requests);
  line.member("num_ctx_tokens", details.num_ctx_tokens);
  line.member("num_generation_requests", details.num_generation_requests);
  line.member("num_generation_tokens", details.num_generation_tokens);
  line.member("elapsed_ms", details.elapsed_ms);
  line.member("num_encoder_inputs", details.num_encoder_inputs);
  line.member("num_encoder_output_tokens", details.num_encoder_output_tokens);
  line.member("is_dummy", details.is_dummy);
}

// With the runtime mode, which the struct only points to.
struct RecordedCudaGraph {
  const vllm_metrics::CudaGraphStat& stat;
  const std::string& runtime_mode;
};

inline void write_members(TraceLine& line, const RecordedCudaGraph& graph) {
  line.member("num_unpadded_tokens", graph.stat.num_unpadded_tokens);
  line.member("num_padded_tokens", graph.stat.num_padded_tokens);
  line.member("num_paddings", graph.stat.num_paddings);
  line.member("runtime_mode", graph.runtime_mode);
}

// What most steps have not.
inline void write_features(TraceLine& line, const RecordedScheduler& recorded) {
  const vllm_metrics::SchedulerStats& stats = recorded.stats;
  if (!stats.kv_cache_eviction_events.empty()) {
    line.member("kv_cache_eviction_events", stats.kv_cache_eviction_events);
  }
  if (stats.spec_decoding_stats) {
    line.member("spec_decoding_stats", *stats.spec_decoding_stats);
  }
  if (recorded.has_nixl) line.member("kv_connector_stats", recorded.nixl);
  if (!recorded.waiting_lora_adapters.empty()) {
    line.member("waiting_lora_adapters", recorded.waiting_lora_adapters);
  }
  if (!recorded.running_lora_adapters.empty()) {
    line.member("running_lora_adapters", recorded.running_lora_adapters);
  }
  if (stats.cudagraph_stats) {
    line.member("cudagraph_stats", RecordedCudaGraph{*stats.cudagraph_stats,
                                                     recorded.runtime_mode});
  }
  if (stats.iteration_details) {
    line.member("iteration_details", *stats.iteration_details);
  }
}

inline void write_members(TraceLine& line, const RecordedScheduler& recorded) {
  const vllm_metrics::SchedulerStats& stats = recorded.stats;
  line.member("num_running_reqs", stats.num_running_reqs);
  line.member("num_waiting_reqs", stats.num_waiting_reqs);
  line.member("num_skipped_waiting_reqs", stats.num_skipped_waiting_reqs);
  line.member("step_counter", stats.step_counter);
  line.member("current_wave", stats.current_wave);
  line.member("kv_cache_usage", stats.kv_cache_usage);
  line.member("prefix_cache_stats", stats.prefix_cache_stats);
  line.member("connector_prefix_cache_stats",
              stats.connector_prefix_cache_stats);
  line.member("perf_stats", stats.perf_stats);
  write_features(line, recorded);
}

inline void write_members(TraceLine& line,
                          const vllm_metrics::PromptTokenStats& stats) {
  line.member("computed", stats.computed);
  line.member("local_cache_hit", stats.local_cache_hit);
  line.member("external_kv_transfer", stats.external_kv_transfer);
  line.member("cached_tokens", stats.cached_tokens);
  line.member("total", stats.total);
}

inline void write_members(TraceLine& line,
                          const vllm_metrics::FinishedRequestStats& stats) {
  line.member("finish_reason", name_of(stats.finish_reason));
  line.member("e2e_latency", stats.e2e_latency);
  line.member("num_prompt_tokens", stats.num_prompt_tokens);
  line.member("num_generation_tokens", stats.num_generation_tokens);
  line.member("max_tokens_param", stats.max_tokens_param);
  line.member("queued_time", stats.queued_time);
  line.member("prefill_time", stats.prefill_time);
  line.member("inference_time", stats.inference_time);
  line.member("decode_time", stats.decode_time);
  line.member("mean_time_per_output_token", stats.mean_time_per_output_token);
  line.member("is_corrupted", stats.is_corrupted);
  line.member("num_cached_tokens", stats.num_cached_tokens);
  line.member("num_preemptions", stats.num_preemptions);
}

inline void write_members(TraceLine& line,
                          const vllm_metrics::IterationStats& stats) {
  line.member("num_generation_tokens", stats.num_generation_tokens);
  line.member("num_preempted_reqs", stats.num_preempted_reqs);
  line.member("num_corrupted_reqs", stats.num_corrupted_reqs);
  line.member("prompt_token_stats", stats.prompt_token_stats);
  line.member("max_num_generation_tokens_iter",
              stats.max_num_generation_tokens_iter);
  line.member("n_params_iter", stats.n_params_iter);
  line.member("time_to_first_tokens_iter", stats.time_to_first_tokens_iter);
  line.member("inter_token_latencies_iter", stats.inter_token_latencies_iter);
  line.member("finished_requests", stats.finished_requests);
}
