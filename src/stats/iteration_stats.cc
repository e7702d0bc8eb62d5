#include "vllm_metrics/stats/iteration_stats.h"

#include <utility>

#include "vllm_metrics/stats/saturating_add.h"

namespace vllm_metrics::inline v0 {
namespace {

std::optional<double> between(std::optional<double> from,
                              std::optional<double> to) {
  if (!from.has_value() || !to.has_value()) return std::nullopt;
  return *to - *from;
}

FinishedRequestStats finished(FinishReason reason, double now,
                              const RequestStateStats& request) {
  FinishedRequestStats stats;
  stats.finish_reason = reason;
  stats.e2e_latency = now - request.arrival_time;
  stats.num_prompt_tokens = request.num_prompt_tokens;
  stats.num_generation_tokens = request.num_generation_tokens;
  stats.max_tokens_param = request.max_tokens_param;
  stats.queued_time = between(request.queued_ts, request.scheduled_ts);
  stats.prefill_time = between(request.scheduled_ts, request.first_token_ts);
  stats.inference_time = between(request.scheduled_ts, request.last_token_ts);
  stats.decode_time = between(request.first_token_ts, request.last_token_ts);
  if (request.num_generation_tokens > 1 && stats.decode_time.has_value()) {
    stats.mean_time_per_output_token =
        *stats.decode_time /
        static_cast<double>(request.num_generation_tokens - 1);
  }
  stats.is_corrupted = request.is_corrupted;
  stats.num_cached_tokens = request.num_cached_tokens;
  stats.num_preemptions = request.num_preemptions;
  if (request.first_token_ts.has_value())
    stats.first_token_latency = request.first_token_latency;
  stats.trace = request.trace;
  stats.request_id = request.request_id;
  if (request.scheduled_ts.has_value()) {
    for (const double time : request.preempted_ts.seconds())
      stats.preemption_times.add(time - *request.scheduled_ts);
  }
  return stats;
}

void move_lora(RequestStateStats& request, LoraRequestStates::Phase to) {
  if (request.lora == nullptr) return;
  request.lora->move(request.lora_name, request.lora_phase, to);
  request.lora_phase = to;
}

void record_end(IterationStats& step, FinishedRequestStats stats,
                RequestStateStats& request) {
  move_lora(request, LoraRequestStates::Phase::kNone);
  if (request.is_corrupted) ++step.num_corrupted_reqs;
  if (request.parent == nullptr) {
    step.max_num_generation_tokens_iter.push_back(stats.num_generation_tokens);
    step.n_params_iter.push_back(1);
  } else if (request.parent->child_ended(stats.num_generation_tokens)) {
    step.max_num_generation_tokens_iter.push_back(
        request.parent->max_num_generation_tokens());
    step.n_params_iter.push_back(request.parent->n());
  }
  step.finished_requests.push_back(stats);
}

}  // namespace

void IterationStats::reset(double now) noexcept {
  iteration_timestamp = now;
  num_generation_tokens = 0;
  num_preempted_reqs = 0;
  num_corrupted_reqs = 0;
  prompt_token_stats = {};
  finished_requests.clear();
  max_num_generation_tokens_iter.clear();
  n_params_iter.clear();
  time_to_first_tokens_iter.clear();
  inter_token_latencies_iter.clear();
}

bool IterationStats::take(const EngineCoreOutput& output,
                          double engine_core_timestamp,
                          RequestStateStats& request, double& latency) {
  saturating_add_to(num_generation_tokens, output.num_new_tokens);
  saturating_add_to(request.num_generation_tokens, output.num_new_tokens);
  request.is_corrupted |= output.num_nans_in_logits > 0;

  update_from_events(output.events, request);

  bool has_latency = false;
  if (request.is_prefilling) {
    if (output.prefill_stats.has_value()) {
      prompt_token_stats.update(*output.prefill_stats);
      request.num_cached_tokens = output.prefill_stats->num_cached_tokens();
    }
    request.first_token_latency = iteration_timestamp - request.arrival_time;
    time_to_first_tokens_iter.push_back(request.first_token_latency);
    request.first_token_ts = engine_core_timestamp;
    request.is_prefilling = false;
  } else if (request.last_token_ts.has_value()) {
    latency = engine_core_timestamp - *request.last_token_ts;
    has_latency = true;
  }
  request.last_token_ts = engine_core_timestamp;
  return has_latency;
}

void IterationStats::update_from_events(std::span<const EngineCoreEvent> events,
                                        RequestStateStats& request) {
  for (const EngineCoreEvent& event : events) {
    switch (event.type) {
      case EngineCoreEvent::Type::kQueued:
        request.queued_ts = event.timestamp;
        move_lora(request, LoraRequestStates::Phase::kWaiting);
        break;
      case EngineCoreEvent::Type::kScheduled:
        if (!request.scheduled_ts.has_value())
          request.scheduled_ts = event.timestamp;
        move_lora(request, LoraRequestStates::Phase::kRunning);
        break;
      case EngineCoreEvent::Type::kPreempted:
        ++num_preempted_reqs;
        ++request.num_preemptions;
        request.preempted_ts.add(event.timestamp);
        move_lora(request, LoraRequestStates::Phase::kWaiting);
        break;
    }
  }
}

void IterationStats::update_from_finished_request(FinishReason reason,
                                                  RequestStateStats& request) {
  record_end(*this, finished(reason, iteration_timestamp, request), request);
}

void IterationStats::update_from_ended_request(FinishReason reason,
                                               double engine_core_timestamp,
                                               RequestStateStats& request) {
  FinishedRequestStats stats = finished(reason, iteration_timestamp, request);
  if (!request.scheduled_ts.has_value() && request.is_prefilling)
    stats.queued_time = between(request.queued_ts, engine_core_timestamp);
  record_end(*this, stats, request);
}

void drop_request(RequestStateStats& request) {
  move_lora(request, LoraRequestStates::Phase::kNone);
  if (const auto parent = std::exchange(request.parent, nullptr))
    parent->child_ended(0);
}

}  // namespace vllm_metrics::inline v0
