#include "src/tools/doctor/diagnosis.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "src/tools/doctor/case_signs.h"
#include "src/tools/doctor/levers.h"

namespace vllm_metrics::doctor {
namespace {

// What a rule knows.
struct Case {
  const Reading& r;
  const Objectives& objectives;
  const CaseSigns& is;
};

using MaybeFinding = std::optional<Finding>;

std::string percent(double share) {
  return fmt::format("{:.{}f} %", share * 100.0, share < 0.1 ? 1 : 0);
}

std::string seconds(double value) {
  return value < 1.0 ? fmt::format("{:.3g} ms", value * 1e3)
                     : fmt::format("{:.3g} s", value);
}

Finding finding(std::string_view id, std::string_view title,
                std::string_view cause) {
  return {.id = id,
          .title = title,
          .cause = std::string(cause),
          .levers = levers_of(id)};
}

Evidence kv_usage(const Case& c) {
  return {"vllm:kv_cache_usage_perc",
          "KV cache " + percent(c.is.kv_usage) + " full", c.is.kv_usage};
}

Evidence waiting(const Case& c) {
  return {"vllm:num_requests_waiting",
          fmt::format("{:.0f} requests wait, {:.0f} before", c.r.waiting->after,
                      c.r.waiting->before),
          c.r.waiting->after};
}

Evidence running(const Case& c) {
  return {"vllm:num_requests_running",
          fmt::format("{:.0f} requests run, {:.0f} before", c.r.running->after,
                      c.r.running->before),
          c.r.running->after};
}

Evidence queue_time(const Case& c) {
  return {"vllm:request_queue_time_seconds",
          fmt::format("a request waits {}, its prefill takes {} (means)",
                      seconds(c.is.queue), seconds(c.is.prefill)),
          c.is.queue};
}

Evidence preemptions(const Case& c) {
  std::string text = fmt::format("{:.0f} preemptions", *c.r.preemptions);
  if (c.is.ended > 0.0)
    text += fmt::format(", {:.2g} for each request that ended",
                        *c.r.preemptions / c.is.ended);
  return {"vllm:num_preemptions", std::move(text), *c.r.preemptions};
}

Evidence ttft(const Case& c) {
  return {"vllm:time_to_first_token_seconds",
          fmt::format("TTFT p95 {}; well enough: {}", seconds(c.is.ttft_p95),
                      seconds(c.objectives.ttft_p95)),
          c.is.ttft_p95};
}

Evidence step_tokens(const Case& c) {
  return {"vllm:iteration_tokens_total",
          fmt::format("{:.0f} tokens in a step, mean; p99 {:.0f}",
                      c.is.step_tokens, quantile(0.99, *c.r.step_tokens)),
          c.is.step_tokens};
}

Evidence hit_rate(const Case& c) {
  const double rate = c.r.hit_rate().value_or(0.0);
  std::string text = "prefix cache hits " + percent(rate);
  if (const auto before = c.r.hit_rate_before())
    text += ", until then " + percent(*before);
  return {"vllm:prefix_cache_hits", std::move(text), rate};
}

void add_gpus(const Case& c, Finding& found) {
  if (c.r.tensor_active.has_value())
    found.evidence.push_back(
        {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
         "tensor cores busy " + percent(*c.r.tensor_active),
         *c.r.tensor_active});
  if (c.r.dram_active.has_value())
    found.evidence.push_back({"DCGM_FI_PROF_DRAM_ACTIVE",
                              "device memory busy " + percent(*c.r.dram_active),
                              *c.r.dram_active});
}

MaybeFinding clients_give_up(const Case& c) {
  constexpr double kAbortShare = 0.05;
  constexpr double kFewRequests = 5.0;
  if (c.is.abort_share < kAbortShare || c.r.ended->abort < kFewRequests)
    return {};
  Finding found = finding(
      "clients-give-up", "Clients give up before their answer is complete.",
      "The answer takes longer than the clients' time-out; what was computed "
      "for them is lost.");
  found.evidence = {{"vllm:request_success",
                     fmt::format("{} of the requests that ended were aborted",
                                 percent(c.is.abort_share)),
                     c.is.abort_share}};
  if (c.r.queue_time.has_value()) found.evidence.push_back(queue_time(c));
  if (c.r.ttft.has_value()) found.evidence.push_back(ttft(c));
  found.confidence =
      c.is.ttft_is_bad || c.is.queues ? Confidence::kHigh : Confidence::kMedium;
  return found;
}

MaybeFinding preemption_storm(const Case& c) {
  if (!c.is.preempts) return {};
  Finding found = finding(
      "preemption-storm", "Requests are preempted and computed again.",
      "More requests run than the KV cache has room for as they grow; each "
      "preemption throws its tokens away.");
  found.evidence = {preemptions(c), kv_usage(c)};
  found.confidence = c.is.kv_is_full ? Confidence::kHigh : Confidence::kMedium;
  return found;
}

MaybeFinding queue_saturated(const Case& c) {
  if (!c.is.queues || !c.is.kv_is_full || c.is.preempts) return {};
  Finding found = finding(
      "queue-saturated", "Requests queue for room in the KV cache.",
      "Demand is above what the KV cache can hold: requests wait until others "
      "end.");
  found.evidence = {waiting(c), kv_usage(c)};
  if (c.r.queue_time.has_value()) found.evidence.push_back(queue_time(c));
  if (c.r.preemptions.value_or(0.0) > 0.0)
    found.evidence.push_back(preemptions(c));
  found.confidence =
      c.r.queue_time.has_value() ? Confidence::kHigh : Confidence::kMedium;
  return found;
}

MaybeFinding false_saturation(const Case& c) {
  if (!c.is.queues || c.is.kv_is_full || c.is.preempts || c.is.computes ||
      !c.is.running_does_not_rise)
    return {};
  Finding found = finding(
      "false-saturation", "Requests queue though the engine has room.",
      "The number of requests that may run is limited below what memory and "
      "GPU could serve.");
  found.evidence = {waiting(c), running(c), kv_usage(c)};
  if (c.r.queue_time.has_value()) found.evidence.push_back(queue_time(c));
  found.confidence =
      c.is.kv_usage < 0.7 ? Confidence::kHigh : Confidence::kMedium;
  return found;
}

MaybeFinding compute_bound(const Case& c) {
  if (!c.is.computes || !c.is.steps_are_full || c.is.kv_is_full ||
      !(c.is.queues || c.is.ttft_is_bad))
    return {};
  Finding found = finding(
      "compute-bound", "Prompts arrive faster than the GPU can compute them.",
      "Each step is full of prompt tokens, and the queue grows with the length "
      "of the prompts.");
  found.evidence = {step_tokens(c), ttft(c)};
  if (c.r.waiting.has_value()) found.evidence.push_back(waiting(c));
  add_gpus(c, found);
  found.confidence =
      c.r.tensor_active.has_value() ? Confidence::kHigh : Confidence::kMedium;
  return found;
}

MaybeFinding scattered_sessions(const Case& c) {
  if (!c.is.scatters) return {};
  Finding found = finding(
      "scattered-sessions", "Requests of one session go to different engines.",
      "The prefix cache of an engine helps only the requests that come back to "
      "it; the engines share the load evenly, whoever asks.");
  found.evidence = {hit_rate(c),
                    {"vllm:prompt_tokens",
                     fmt::format("the busiest of {} engines has {:.2f} times "
                                 "the mean of the prompt tokens",
                                 c.r.engines.size(), c.is.even_share),
                     c.is.even_share}};
  found.confidence = Confidence::kMedium;
  return found;
}

MaybeFinding cache_thrashing(const Case& c) {
  if (!c.is.thrashes) return {};
  const double idle = mean(*c.r.idle_before_evict);
  Finding found = finding(
      "cache-thrashing", "Cached prefixes are evicted before they are used.",
      "The KV cache is too small for the time between two requests of one "
      "session: it forgets each before it comes back.");
  found.evidence = {
      hit_rate(c),
      {"vllm:kv_block_idle_before_evict_seconds",
       fmt::format("a block is evicted {} after its last use, mean",
                   seconds(idle)),
       idle}};
  if (c.r.reuse_gap) {
    const double gap = mean(*c.r.reuse_gap);
    found.evidence.push_back(
        {"vllm:kv_block_reuse_gap_seconds",
         fmt::format("those that are used in time are so after {}, mean",
                     seconds(gap)),
         gap});
  }
  found.confidence = Confidence::kMedium;
  return found;
}

MaybeFinding long_prompts(const Case& c) {
  constexpr double kLongPrompt = 4000.0;  // tokens, p95
  if (!c.is.ttft_is_bad || c.is.prefill < c.is.queue || c.is.computes ||
      !c.r.prompt_length || quantile(0.95, *c.r.prompt_length) < kLongPrompt ||
      c.is.scatters || c.is.thrashes)
    return {};
  Finding found = finding(
      "long-prompts", "First tokens are late because prompts are long.",
      "A prompt is computed in chunks of what a step may take; long ones need "
      "many steps.");
  found.evidence = {ttft(c),
                    queue_time(c),
                    {"vllm:request_prompt_tokens",
                     fmt::format("prompts of {:.0f} tokens, mean; p95 {:.0f}",
                                 mean(*c.r.prompt_length),
                                 quantile(0.95, *c.r.prompt_length)),
                     mean(*c.r.prompt_length)}};
  if (c.r.step_tokens) found.evidence.push_back(step_tokens(c));
  found.confidence = Confidence::kHigh;
  return found;
}

MaybeFinding prefill_interference(const Case& c) {
  if (!c.is.stutters) return {};
  Finding found = finding(
      "prefill-interference", "Streams stutter while prompts are computed.",
      "A step that computes a large piece of a prompt makes every stream in it "
      "wait.");
  found.evidence = {
      {"vllm:inter_token_latency_seconds",
       fmt::format("ITL p99 {}, p50 {}", seconds(c.is.itl_p99),
                   seconds(c.is.itl_p50)),
       c.is.itl_p99},
      {"vllm:request_time_per_output_token_seconds",
       "time per output token is fine: " + seconds(c.is.tpot) + ", mean",
       c.is.tpot}};
  if (c.r.step_tokens) found.evidence.push_back(step_tokens(c));
  found.confidence = Confidence::kHigh;
  return found;
}

MaybeFinding bandwidth_bound(const Case& c) {
  if (!c.is.reads_memory || c.is.preempts || c.is.stutters) return {};
  Finding found = finding(
      "bandwidth-bound",
      "Every token is slow: the device's memory is the limit.",
      "Each step reads the weights and the KV cache of all running requests; "
      "the more run, the longer it takes.");
  found.evidence = {
      {"vllm:request_time_per_output_token_seconds",
       fmt::format("time per output token {}, mean; well enough: {}",
                   seconds(c.is.tpot), seconds(c.objectives.tpot)),
       c.is.tpot},
      {"vllm:inter_token_latency_seconds", "ITL p50 " + seconds(c.is.itl_p50),
       c.is.itl_p50},
      {"vllm:request_decode_time_seconds",
       percent(c.is.decode_share) + " of a request's time is decode",
       c.is.decode_share}};
  add_gpus(c, found);
  found.confidence =
      c.r.dram_active.has_value() ? Confidence::kHigh : Confidence::kMedium;
  return found;
}

Finding idle() {
  Finding found;
  found.id = "idle";
  found.title = "No request is in the engines, and none came.";
  found.confidence = Confidence::kHigh;
  return found;
}

// What is worst for the users comes first, and what explains the rest.
constexpr MaybeFinding (*kRules[])(const Case&) = {
    clients_give_up,      preemption_storm,   queue_saturated, false_saturation,
    compute_bound,        scattered_sessions, cache_thrashing, long_prompts,
    prefill_interference, bandwidth_bound,
};

}  // namespace

std::string_view name_of(Confidence confidence) {
  switch (confidence) {
    case Confidence::kMedium:
      return "medium";
    case Confidence::kHigh:
      return "high";
  }
  return "?";
}

std::string_view name_of(State state) {
  switch (state) {
    case State::kIdle:
      return "idle";
    case State::kHealthy:
      return "healthy";
    case State::kFindings:
      return "findings";
    case State::kUnknown:
      return "unknown";
  }
  return "?";
}

Diagnosis diagnose(const Reading& reading, const Objectives& objectives) {
  if (!reading.is_active()) return {State::kIdle, {idle()}};
  if (!reading.moved())
    return {State::kUnknown, {}, "no counter moved between the pages"};
  const CaseSigns signs(reading, objectives);
  Diagnosis out{State::kHealthy};
  for (const auto rule : kRules) {
    if (auto found = rule({reading, objectives, signs}))
      out.findings.push_back(*std::move(found));
  }
  if (!out.findings.empty()) {
    out.state = State::kFindings;
  } else if (signs.queues) {
    out.state = State::kUnknown;
    out.why = "requests queue, and the pages do not show for what";
  }
  return out;
}

}  // namespace vllm_metrics::doctor
