// Steps of an engine that has lost its mind: every number may be anything.

#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/loggers/surroundings.h"
#include "vllm_metrics/exposition/open_metrics.h"
#include "vllm_metrics/exposition/text_parser.h"
#include "vllm_metrics/loggers/nixl_connector_metrics.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"
#include "vllm_metrics/stats/nixl_stats.h"

namespace vllm_metrics {
namespace {

using namespace vllm_metrics::testing;

// One seed, one sequence of them.
class Anything {
 public:
  explicit Anything(std::int64_t largest) : largest_(largest) {}

  std::uint64_t bits() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return state_ >> 33;
  }
  std::int64_t integer() {
    const std::int64_t values[] = {
        0, 1, 7, -1, -7, -largest_ - 1, largest_, largest_ - 1};
    return values[bits() % std::size(values)];
  }
  double number() {
    using Limits = std::numeric_limits<double>;
    const double values[] = {0.0,
                             0.25,
                             3.0,
                             -1.0,
                             Limits::quiet_NaN(),
                             Limits::infinity(),
                             -Limits::infinity(),
                             Limits::max(),
                             Limits::lowest(),
                             Limits::denorm_min()};
    return values[bits() % std::size(values)];
  }
  bool chance() { return bits() % 2 == 0; }

 private:
  std::int64_t largest_;
  std::uint64_t state_ = 17;
};

void fill(PrefixCacheStats& out, Anything& any) {
  out = {};
  out.reset = any.chance();
  for (auto* const n :
       {&out.requests, &out.queries, &out.hits, &out.preempted_requests,
        &out.preempted_queries, &out.preempted_hits})
    *n = any.integer();
}

void fill(SchedulerStats& out, Anything& any) {
  for (auto* const n :
       {&out.num_running_reqs, &out.num_waiting_reqs,
        &out.num_skipped_waiting_reqs, &out.step_counter, &out.current_wave,
        &out.num_dropped_eviction_events, &out.kv_fetch_stages.in_progress,
        &out.kv_fetch_stages.waiting_to_start,
        &out.kv_fetch_stages.completed_waiting})
    *n = any.integer();
  out.kv_cache_usage = any.number();
  fill(out.prefix_cache_stats, any);
  fill(out.connector_prefix_cache_stats.emplace(), any);
  out.kv_cache_eviction_events.assign(
      2, {.lifetime_seconds = any.number(),
          .idle_seconds = any.number(),
          .reuse_gaps = {any.number(), any.number(), any.number()},
          .num_reuse_gaps = any.bits()});
  auto& drafts = out.spec_decoding_stats.emplace();
  drafts.num_spec_tokens = any.integer();
  drafts.observe_draft(any.integer(), any.integer());
  for (auto* const n :
       {&drafts.num_drafts, &drafts.num_draft_tokens,
        &drafts.num_accepted_tokens, &drafts.num_invalid_drafts})
    *n = any.integer();
  drafts.num_accepted_tokens_per_pos.assign(any.bits() % 9, any.integer());
  out.waiting_lora_adapters = {{"a\n\"\\", any.integer()}, {"", 1}};
  out.running_lora_adapters = {{"\xFF\xFE,=", any.integer()}};
  out.cudagraph_stats = {.num_unpadded_tokens = any.integer(),
                         .num_padded_tokens = any.integer(),
                         .num_paddings = any.integer(),
                         .runtime_mode = "\n"};
  out.perf_stats.emplace();
  out.perf_stats->num_flops_per_gpu = any.number();
  out.perf_stats->num_read_bytes_per_gpu = any.number();
  out.perf_stats->num_write_bytes_per_gpu = any.number();
  out.iteration_details = {.iteration_index = any.integer(),
                           .num_ctx_requests = any.integer(),
                           .num_ctx_tokens = any.integer(),
                           .num_generation_requests = any.integer(),
                           .num_generation_tokens = any.integer(),
                           .elapsed_ms = any.number()};
}

// Through the arithmetic of the library, and past it.
void fill(IterationStats& out, RequestStateStats& request, Anything& any) {
  out.reset(any.number());
  const EngineCoreEvent events[] = {
      {EngineCoreEvent::Type::kScheduled, any.number()},
      {static_cast<EngineCoreEvent::Type>(77), any.number()}};
  EngineCoreOutput output{.num_new_tokens = any.integer(), .events = events};
  output.prefill_stats = {.num_prompt_tokens = any.integer(),
                          .num_local_cached_tokens = any.integer(),
                          .num_external_cached_tokens = any.integer(),
                          .num_host_cached_tokens = any.integer()};
  output.num_nans_in_logits = any.integer();
  request.arrival_time = any.number();
  request.num_prompt_tokens = any.integer();
  request.max_tokens_param = any.integer();
  for (int i = 0; i < 3; ++i)
    out.update_from_output(output, any.number(), request);
  const auto reason = static_cast<FinishReason>(any.bits() % 7);
  out.update_from_finished_request(reason, request);
  if (any.chance()) {
    request = {};
    out.update_from_ended_request(reason, any.number(), request);
  }
  if (any.chance()) return;
  for (auto* const n :
       {&out.num_generation_tokens, &out.num_preempted_reqs,
        &out.num_corrupted_reqs, &out.prompt_token_stats.computed,
        &out.prompt_token_stats.total, &out.prompt_token_stats.cached_tokens,
        &out.prompt_token_stats.local_cache_hit,
        &out.prompt_token_stats.host_cached})
    *n = any.integer();
  for (auto& finished : out.finished_requests) {
    finished.e2e_latency = any.number();
    finished.queued_time = any.number();
    finished.decode_time = any.number();
    finished.mean_time_per_output_token = any.number();
    finished.num_generation_tokens = any.integer();
    finished.num_cached_tokens = any.integer();
    finished.first_token_latency = any.number();
    finished.trace = {.trace_id = {1}, .span_id = {1}, .flags = 0xFF};
  }
  out.max_num_generation_tokens_iter.push_back(any.integer());
  out.n_params_iter.push_back(any.integer());
  out.time_to_first_tokens_iter.push_back(any.number());
  out.inter_token_latencies_iter.assign(any.bits() % 20, any.number());
}

// No more than 300 steps can take a counter to where it wraps.
constexpr std::int64_t kLargeEnough = std::int64_t{1} << 52;

// Counters are numbers, and rise where they do not wrap.
void check_page(const Registry& registry, std::map<std::string, double>& before,
                bool wraps) {
  const std::string page(OpenMetrics().render(registry));
  const auto parsed = parse_page(page);
  INFO(parsed.status());
  REQUIRE(parsed.ok());
  Snapshot snapshot;
  registry.snapshot(snapshot);
  for (const SchemaFamily& family : snapshot.schema->families) {
    for (const Series& series : family.series) {
      if (family.family.kind == MetricKind::kGauge) continue;
      std::string key = family.family.name;
      for (const Label& label : series.labels) key += "," + label.value;
      CAPTURE(key);
      double now = 0.0;
      if (family.family.kind == MetricKind::kHistogram) {
        for (const auto n : snapshot.buckets(series))
          now += static_cast<double>(n);
        CHECK_FALSE(std::isnan(snapshot.sum(series)));
      } else if (family.family.number == CounterNumber::kInteger) {
        now = static_cast<double>(snapshot.integer(series));
      } else {
        now = snapshot.real(series);
      }
      CHECK((wraps || now >= before[key]));
      CHECK_FALSE(std::isnan(now));
      before[key] = now;
    }
  }
}

TEST_CASE("manager: any numbers in a step leave a page that is right in itself",
          "[loggers]") {
  const bool is_aggregated = GENERATE(false, true);
  const std::int64_t largest =
      is_aggregated ? std::numeric_limits<std::int64_t>::max() : kLargeEnough;
  Surroundings around;
  StatLoggerOptions options = around.options();
  options.engine_indexes = {0, 1};
  options.wire_version = {0, 32};
  options.aggregate_engine_logging = is_aggregated;
  options.kv_cache_metrics = true;
  options.num_speculative_tokens = 4;
  options.max_loras = 2;
  options.kv_connector = std::make_shared<NixlConnectorMetrics>();
  options.compute_nans_in_logits = true;
  options.enable_mfu_metrics = true;
  options.debug_mfu_metrics = true;
  options.cudagraph.emplace().capture_sizes = {-1, 0, 8};
  options.exemplars = true;
  options.native_latency_histograms = NativeHistogramOptions{};
  auto made = StatLoggerManager::create(std::move(options));
  INFO(made.status());
  REQUIRE(made.ok());
  StatLoggerManager& manager = **made;
  Anything any(largest);
  std::map<std::string, double> before;
  NixlStats transfers;
  SchedulerStats scheduler;
  IterationStats iteration;
  RequestStateStats request;
  MultiModalCacheStats images;
  for (int step = 0; step < 300; ++step) {
    fill(scheduler, any);
    fill(iteration, request, any);
    transfers = {};
    transfers.record_transfer(any.number(), any.number(), any.integer(),
                              any.integer());
    transfers.num_kv_expired_reqs.push_back(any.integer());
    scheduler.kv_connector_stats = any.chance() ? &transfers : nullptr;
    images.queries = any.integer();
    images.hits = any.integer();
    manager.record(any.chance() ? &scheduler : nullptr,
                   any.chance() ? &iteration : nullptr,
                   any.chance() ? &images : nullptr,
                   static_cast<int>(any.bits() % 4) - 1);
    manager.record_admission_rejection(
        static_cast<AdmissionLimit>(any.bits() % 5));
    manager.record_operation(static_cast<EngineOperation>(any.bits() % 20),
                             any.number());
    manager.record_sleep_state({.sleep = static_cast<int>(any.integer()),
                                .level = static_cast<int>(any.integer())});
    if (step % 10 != 0) continue;
    around.clock->advance(10.0);
    manager.log();
    check_page(*manager.registry(), before, largest > kLargeEnough);
  }
  for (const std::string& line : around.log->lines)
    CHECK(line.find("threw") == std::string::npos);
}

}  // namespace
}  // namespace vllm_metrics
