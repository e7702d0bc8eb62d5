// Trace format 1, written: the lines that TraceRecorder (trace_recorder.h)
// makes of what an engine reports.

#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vllm_metrics/registry/labels.h"
#include "vllm_metrics/stats/iteration_stats.h"
#include "vllm_metrics/stats/scheduler_stats.h"

// One line of a trace: a JSON object, written member by member. Numbers are
// the shortest text that reads back as the same number.
class TraceLine {
 public:
  explicit TraceLine(std::string_view op) { member("op", op); }

  template <class T>
  TraceLine& member(std::string_view name, const T& value) {
    if (text_.back() != '{') text_ += ',';
    put(name);
    text_ += ':';
    put(value);
    return *this;
  }

  // The line; nothing can be added after it.
  std::string_view finish() {
    text_ += "}\n";
    return text_;
  }

 private:
  void put(const char*) = delete;  // would be taken for a bool
  void put(bool value) { text_ += value ? "true" : "false"; }
  void put(int value) { put(std::int64_t{value}); }
  void put(std::int64_t value) { put_digits(value); }
  void put(vllm_metrics::FinishReason reason) { put(name_of(reason)); }

  void put(double value) {
    if (std::isnan(value)) return put(std::string_view("NaN"));
    if (std::isinf(value)) {
      return put(std::string_view(value > 0 ? "Infinity" : "-Infinity"));
    }
    const std::size_t start = text_.size();
    put_digits(value);
    if (text_.find_first_of(".e", start) == text_.npos) text_ += ".0";
  }

  void put(std::string_view value) {
    constexpr std::string_view kHex = "0123456789abcdef";
    text_ += '"';
    for (const char c : vllm_metrics::valid_utf8(value)) {
      if (c == '"' || c == '\\') {
        text_ += '\\';
        text_ += c;
      } else if (const auto u = static_cast<unsigned char>(c); u < 0x20) {
        text_.append("\\u00").append({kHex[u / 16], kHex[u % 16]});
      } else {
        text_ += c;
      }
    }
    text_ += '"';
  }
  void put(const std::string& value) { put(std::string_view(value)); }

  template <class T>
  void put(const std::optional<T>& value) {
    value.has_value() ? put(*value) : void(text_ += "null");
  }

  template <class T>
  void put(const std::vector<T>& values) {
    text_ += '[';
    for (const T& value : values) {
      if (text_.back() != '[') text_ += ',';
      put(value);
    }
    text_ += ']';
  }

  void put(const std::pair<std::string, std::string>& pair) {
    put(std::vector<std::string>{pair.first, pair.second});
  }

  void put(const vllm_metrics::CacheStats& stats) {
    text_ += '{';
    put_members(stats);
    text_ += '}';
  }

  void put(const vllm_metrics::PrefixCacheStats& stats) {
    text_ += '{';
    put_members(stats);
    member("preempted_requests", stats.preempted_requests);
    member("preempted_queries", stats.preempted_queries);
    member("preempted_hits", stats.preempted_hits);
    text_ += '}';
  }

  void put(const vllm_metrics::PerfStats& stats) {
    text_ += '{';
    member("num_flops_per_gpu", stats.num_flops_per_gpu);
    member("num_read_bytes_per_gpu", stats.num_read_bytes_per_gpu);
    member("num_write_bytes_per_gpu", stats.num_write_bytes_per_gpu);
    text_ += '}';
  }

  void put(const vllm_metrics::SchedulerStats& stats) {
    text_ += '{';
    member("num_running_reqs", stats.num_running_reqs);
    member("num_waiting_reqs", stats.num_waiting_reqs);
    member("num_skipped_waiting_reqs", stats.num_skipped_waiting_reqs);
    member("step_counter", stats.step_counter);
    member("current_wave", stats.current_wave);
    member("kv_cache_usage", stats.kv_cache_usage);
    member("prefix_cache_stats", stats.prefix_cache_stats);
    member("connector_prefix_cache_stats", stats.connector_prefix_cache_stats);
    member("perf_stats", stats.perf_stats);
    text_ += '}';
  }

  void put(const vllm_metrics::PromptTokenStats& stats) {
    text_ += '{';
    member("computed", stats.computed);
    member("local_cache_hit", stats.local_cache_hit);
    member("external_kv_transfer", stats.external_kv_transfer);
    member("cached_tokens", stats.cached_tokens);
    member("total", stats.total);
    text_ += '}';
  }

  void put(const vllm_metrics::FinishedRequestStats& stats) {
    text_ += '{';
    member("finish_reason", stats.finish_reason);
    member("e2e_latency", stats.e2e_latency);
    member("num_prompt_tokens", stats.num_prompt_tokens);
    member("num_generation_tokens", stats.num_generation_tokens);
    member("max_tokens_param", stats.max_tokens_param);
    member("queued_time", stats.queued_time);
    member("prefill_time", stats.prefill_time);
    member("inference_time", stats.inference_time);
    member("decode_time", stats.decode_time);
    member("mean_time_per_output_token", stats.mean_time_per_output_token);
    member("is_corrupted", stats.is_corrupted);
    member("num_cached_tokens", stats.num_cached_tokens);
    member("num_preemptions", stats.num_preemptions);
    text_ += '}';
  }

  void put(const vllm_metrics::IterationStats& stats) {
    text_ += '{';
    member("num_generation_tokens", stats.num_generation_tokens);
    member("num_preempted_reqs", stats.num_preempted_reqs);
    member("num_corrupted_reqs", stats.num_corrupted_reqs);
    member("prompt_token_stats", stats.prompt_token_stats);
    member("max_num_generation_tokens_iter",
           stats.max_num_generation_tokens_iter);
    member("n_params_iter", stats.n_params_iter);
    member("time_to_first_tokens_iter", stats.time_to_first_tokens_iter);
    member("inter_token_latencies_iter", stats.inter_token_latencies_iter);
    member("finished_requests", stats.finished_requests);
    text_ += '}';
  }

  void put_members(const vllm_metrics::CacheStats& stats) {
    member("reset", stats.reset);
    member("requests", stats.requests);
    member("queries", stats.queries);
    member("hits", stats.hits);
  }

  template <class Number>
  void put_digits(Number value) {
    std::array<char, 32> digits{};
    const auto end =
        std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
    text_.append(digits.data(), end);
  }

  std::string text_ = "{";
};
