#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "vllm_metrics/export.h"
#include "vllm_metrics/stats/finished_request_stats.h"
#include "vllm_metrics/stats/prompt_token_stats.h"
#include "vllm_metrics/stats/request_state_stats.h"
#include "vllm_metrics/stats/saturating_add.h"

namespace vllm_metrics::inline v0 {

// Something that happened to a request inside the engine core.
struct EngineCoreEvent {
  enum class Type { kQueued, kScheduled, kPreempted };
  Type type = Type::kQueued;
  double timestamp = 0.0;  // seconds, engine clock
};

// What one request got out of a step: the part of an engine's output that
// statistics need. It points to the caller's data.
struct EngineCoreOutput {
  std::int64_t num_new_tokens = 0;
  // Since the request's last output, in order.
  std::span<const EngineCoreEvent> events = {};
  std::optional<PrefillStats> prefill_stats = {};  // with the first output
  std::int64_t num_nans_in_logits = 0;  // looked at when the NaN check is on
};

// What the requests of one step did. The engine keeps one per engine index,
// calls reset() when a step's outputs arrive, update_from_output() for each,
// update_from_finished_request() for each that ends, and hands it to
// StatLoggerManager::record(). Vectors keep their storage: no allocation in
// steady state.
//
// Thread-safety: none; a plain struct of one step.
// Definition: vLLM IterationStats. vLLM v1/metrics/stats.py.
struct VLLM_METRICS_EXPORT IterationStats {
  // Wall, seconds since 1970: when the outputs arrived.
  double iteration_timestamp = 0.0;

  std::int64_t num_generation_tokens = 0;
  std::int64_t num_preempted_reqs = 0;  // PREEMPTED events
  // Ended in this step, with NaN logits on the way.
  std::int64_t num_corrupted_reqs = 0;
  PromptTokenStats prompt_token_stats = {};

  std::vector<FinishedRequestStats> finished_requests = {};
  // One per request that ended: the most of its n.
  std::vector<std::int64_t> max_num_generation_tokens_iter = {};
  // One per request that ended: its n.
  std::vector<std::int64_t> n_params_iter = {};
  // Seconds: one per first output.
  std::vector<double> time_to_first_tokens_iter = {};
  // Seconds: one per later output.
  std::vector<double> inter_token_latencies_iter = {};

  // Ready for a step whose outputs arrived at `now` (wall).
  void reset(double now) noexcept;

  // One request's output in this step. `engine_core_timestamp`: the step's end
  // on the engine clock, the same for all its outputs. With several tokens in
  // one output the latency is still one sample, undivided.
  void update_from_output(const EngineCoreOutput& output,
                          double engine_core_timestamp,
                          RequestStateStats& request);

  // The same for all outputs of a step, in less than half the time:
  // `request_of(i)` is the state of the request of `outputs[i]`, a reference.
  template <class RequestOf>
  void update_from_outputs(std::span<const EngineCoreOutput> outputs,
                           double engine_core_timestamp, RequestOf request_of);

  // What happened to a request that has no output in this step; an output
  // brings its events itself. Call it before a request ends that never had one.
  void update_from_events(std::span<const EngineCoreEvent> events,
                          RequestStateStats& request);

  // The request ended with the output just given.
  void update_from_finished_request(FinishReason reason,
                                    RequestStateStats& request);

  // The request ended between two outputs (client gone, error, shutdown) at
  // `engine_core_timestamp`. One that was still waiting has queued until then.
  // To drop a request without a trace, as vLLM does, call drop_request().
  void update_from_ended_request(FinishReason reason,
                                 double engine_core_timestamp,
                                 RequestStateStats& request);

 private:
  // A later output of a running request to which nothing else happened, as
  // nearly all are: its part is inline.
  static bool is_usual(const EngineCoreOutput& output,
                       const RequestStateStats& request) noexcept {
    return output.events.empty() && output.num_nans_in_logits <= 0 &&
           !request.is_prefilling && request.last_token_ts.has_value();
  }
  // Counts a usual output for its request and returns its latency.
  static double take_usual(const EngineCoreOutput& output,
                           double engine_core_timestamp,
                           RequestStateStats& request) noexcept {
    saturating_add_to(request.num_generation_tokens, output.num_new_tokens);
    const double latency = engine_core_timestamp - *request.last_token_ts;
    *request.last_token_ts = engine_core_timestamp;
    return latency;
  }
  // Takes any output but for its latency; false: it has none.
  bool take(const EngineCoreOutput& output, double engine_core_timestamp,
            RequestStateStats& request, double& latency);
};

// Forgets a request that ended outside a step: no metric sees its end. Its
// siblings of the same parent can still complete.
VLLM_METRICS_EXPORT void drop_request(RequestStateStats& request);

inline void IterationStats::update_from_output(const EngineCoreOutput& output,
                                               double engine_core_timestamp,
                                               RequestStateStats& request) {
  double latency = 0.0;
  if (is_usual(output, request)) [[likely]] {
    saturating_add_to(num_generation_tokens, output.num_new_tokens);
    latency = take_usual(output, engine_core_timestamp, request);
  } else if (!take(output, engine_core_timestamp, request, latency)) {
    return;
  }
  inter_token_latencies_iter.push_back(latency);
}

// With the sums in registers and room for all latencies.
template <class RequestOf>
void IterationStats::update_from_outputs(
    std::span<const EngineCoreOutput> outputs, double engine_core_timestamp,
    RequestOf request_of) {
  std::vector<double>& latencies = inter_token_latencies_iter;
  const std::size_t before = latencies.size();
  latencies.resize(before + outputs.size());
  double* latency = latencies.data() + before;
  std::int64_t tokens = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const EngineCoreOutput& output = outputs[i];
    RequestStateStats& request = request_of(i);
    if (is_usual(output, request)) [[likely]] {
      saturating_add_to(tokens, output.num_new_tokens);
      *latency++ = take_usual(output, engine_core_timestamp, request);
    } else if (take(output, engine_core_timestamp, request, *latency)) {
      ++latency;
    }
  }
  latencies.resize(static_cast<std::size_t>(latency - latencies.data()));
  saturating_add_to(num_generation_tokens, tokens);
}

}  // namespace vllm_metrics::inline v0
