#include "src/tools/doctor/case_signs.h"

#include <algorithm>
#include <optional>

namespace vllm_metrics::doctor {
namespace {

// Where docs/operations.md draws the lines.
constexpr double kQueueLength = 3.0;  // requests: autoscalers' limit
constexpr double kKvIsFull = 0.85;
constexpr double kFewPreemptions = 3.0;
// For each ended request. Where requests queue for the KV cache some are
// preempted too, and the queue is what is to be told.
constexpr double kRarePreemption = 0.02;
constexpr double kRareInQueue = 0.5;
constexpr double kTensorIsBusy = 0.6;
constexpr double kDramIsBusy = 0.75;
constexpr double kMostlyDecode = 0.85;
constexpr double kSlowMemory = 0.015;  // seconds per output token
constexpr double kStutter = 6.0;       // ITL p99 / p50
constexpr double kFlat = 0.1;          // of the requests that run
constexpr double kFullStep = 0.4;      // p50 / p99
constexpr double kEvenShare = 1.3;     // the busiest engine / the mean
constexpr double kHitsBefore = 0.2;
constexpr double kHitsFell = 0.7;      // of what they were
constexpr double kShortMemory = 15.0;  // seconds: nobody answers that fast
constexpr double kSomeHits = 0.005;    // that prompts share anything
constexpr double kFewHits = 0.5;
constexpr double kRoom = 0.7;  // of the KV cache

double mean_of(const std::optional<HistogramValue>& taken) {
  return taken.has_value() ? mean(*taken) : 0.0;
}

double quantile_of(const std::optional<HistogramValue>& taken, double q) {
  return taken.has_value() ? quantile(q, *taken) : 0.0;
}

bool queues(const Reading& r, const CaseSigns& is) {
  if (!r.waiting.has_value() ||
      std::min(r.waiting->before, r.waiting->after) < kQueueLength)
    return false;
  return !r.queue_time.has_value() || is.queue > is.prefill;
}

// But for the one or two that have just ended.
bool running_does_not_rise(const Reading& r) {
  if (!r.running.has_value()) return false;
  const auto [before, after] = *r.running;
  return std::min(before, after) > 0.0 &&
         after - before <= std::max(2.0, kFlat * after);
}

bool steps_are_full(const Reading& r, const CaseSigns& is) {
  if (!r.step_tokens.has_value()) return false;
  const double running = r.running.has_value() ? r.running->mean() : 0.0;
  return quantile(0.5, *r.step_tokens) >
             kFullStep * quantile(0.99, *r.step_tokens) &&
         is.step_tokens > 2.0 * running;
}

double even_share(const Reading& r) {
  double most = 0.0;
  double sum = 0.0;
  for (const EngineReading& engine : r.engines) {
    most = std::max(most, engine.prompt_tokens);
    sum += engine.prompt_tokens;
  }
  return sum > 0.0 ? most * static_cast<double>(r.engines.size()) / sum : 0.0;
}

bool scatters(const Reading& r, const CaseSigns& is) {
  const auto now = r.hit_rate();
  const auto before = r.hit_rate_before();
  return r.engines.size() >= 2 && now && before &&
         is.even_share <= kEvenShare && *before >= kHitsBefore &&
         *now <= kHitsFell * *before;
}

bool thrashes(const Reading& r, const CaseSigns& is) {
  const double hits = r.hit_rate().value_or(0.0);
  return r.idle_before_evict && mean(*r.idle_before_evict) <= kShortMemory &&
         hits >= kSomeHits && hits <= kFewHits && is.kv_usage <= kRoom &&
         !is.queues && !is.preempts && !is.computes && !is.scatters;
}

}  // namespace

CaseSigns::CaseSigns(const Reading& r, const Objectives& objectives)
    : queue(mean_of(r.queue_time)),
      prefill(mean_of(r.prefill_time)),
      decode(mean_of(r.decode_time)),
      ttft_p95(quantile_of(r.ttft, 0.95)),
      itl_p50(quantile_of(r.itl, 0.5)),
      itl_p99(quantile_of(r.itl, 0.99)),
      tpot(mean_of(r.tpot)),
      kv_usage(r.kv_usage.has_value() ? r.kv_usage->mean() : 0.0),
      step_tokens(mean_of(r.step_tokens)),
      even_share(doctor::even_share(r)) {
  if (r.ended.has_value() && r.ended->all() > 0.0) {
    ended = r.ended->all();
    abort_share = r.ended->abort / ended;
  }
  const double all = queue + prefill + decode;
  if (all > 0.0) decode_share = decode / all;

  queues = doctor::queues(r, *this);
  ttft_is_bad = ttft_p95 > objectives.ttft_p95;
  kv_is_full = kv_usage >= kKvIsFull;
  running_does_not_rise = doctor::running_does_not_rise(r);
  const double preemptions = r.preemptions.value_or(0.0);
  preempts = preemptions >= kFewPreemptions &&
             preemptions > (queues ? kRareInQueue : kRarePreemption) * ended;
  steps_are_full = doctor::steps_are_full(r, *this);
  computes = r.tensor_active.has_value() ? *r.tensor_active > kTensorIsBusy
                                         : steps_are_full;
  reads_memory = decode_share > kMostlyDecode &&
                 (r.dram_active.has_value()
                      ? *r.dram_active > kDramIsBusy && tpot > kSlowMemory
                      : tpot > objectives.tpot) &&
                 r.tensor_active.value_or(0.0) < kTensorIsBusy;
  stutters = itl_p99 > objectives.itl_p99 && itl_p99 > kStutter * itl_p50 &&
             tpot < objectives.tpot;
  scatters = doctor::scatters(r, *this);
  thrashes = doctor::thrashes(r, *this);
}

}  // namespace vllm_metrics::doctor
