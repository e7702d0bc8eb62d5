// How do I keep what an engine reported, to play it again later?
//
//   example_05_record_trace [TRACE [PAGE]]
//   vllm-metrics-replay TRACE
//
// Runs two small scripted engines with a TraceRecorder (trace_recorder.h, made
// to be copied) among the stat loggers. TRACE is the recorded trace, in the
// folder for temporary files unless given; PAGE gets the page of the live
// engines, which a replay of TRACE gives again, number for number.

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "trace_recorder.h"
#include "vllm_metrics/exposition/text_format.h"
#include "vllm_metrics/loggers/nixl_connector_metrics.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"
#include "vllm_metrics/stats/nixl_stats.h"

namespace {

using namespace vllm_metrics;

// Scripted time; an engine leaves StatLoggerOptions::clock at the machine's.
struct ScriptedClock : Clock {
  double wall() const noexcept override { return 1700000000.0 + now; }
  double monotonic() const noexcept override { return 1000.0 + now; }
  double now = 0.0;
};

// An engine of four requests. Two are one prompt with n = 2: they run until
// their last token, and are preempted once on the way. The third waits, and is
// given up by its client before it was scheduled. The last comes late and still
// waits at the end. All but the third use a LoRA adapter.
class ScriptedEngine {
 public:
  ScriptedEngine(int index, StatLoggerManager& manager,
                 std::shared_ptr<ScriptedClock> clock)
      : index_(index), manager_(manager), clock_(std::move(clock)) {
    const auto parent = std::make_shared<ParentRequest>(2);
    for (RequestStateStats* request :
         {&running_.front(), &running_.back(), &late_}) {
      request->lora_name = index == 0 ? "sql" : "a \"quoted\" adapter";
      request->lora = &adapters_;
    }
    for (RequestStateStats& request : running_) {
      request.arrival_time = clock_->wall() - 0.1 / (index + 3);
      request.num_prompt_tokens = 300;
      request.max_tokens_param = kTokens;
      request.parent = parent;
    }
    waiting_.arrival_time = clock_->wall();
    waiting_.num_prompt_tokens = 50;
  }

  // One step: every running request gets a token.
  void step(int number) {
    iteration_.reset(clock_->wall());
    for (RequestStateStats& request : running_) give_token(number, request);
    if (number == kGiveUp) {
      waiting_.queued_ts = clock_->monotonic() - 0.25;
      iteration_.update_from_ended_request(FinishReason::kAbort,
                                           clock_->monotonic(), waiting_);
    }
    if (number == kLate) {
      const EngineCoreEvent queued{EngineCoreEvent::Type::kQueued,
                                   clock_->monotonic()};
      iteration_.update_from_events({&queued, 1}, late_);
    }
    const bool ended = number == kTokens;
    scheduler_ = {};
    scheduler_.num_running_reqs = ended ? 0 : 2;
    scheduler_.num_waiting_reqs = number < kGiveUp || number >= kLate ? 1 : 0;
    scheduler_.step_counter = number;
    scheduler_.kv_cache_usage = ended ? 0.0 : (number + 1) / 37.0;
    scheduler_.perf_stats = {1e12 / 3, 2e9 / 7, 0.1 * number};
    MultiModalCacheStats mm_cache;
    if (number == 1) {
      scheduler_.prefix_cache_stats.record(300, 160, /*preempted=*/false);
      scheduler_.connector_prefix_cache_stats.emplace().record(140, 40, false);
      mm_cache = {.requests = 1, .queries = 3, .hits = 1};
    }
    add_features(number);
    manager_.record(&scheduler_, &iteration_, number == 1 ? &mm_cache : nullptr,
                    index_);
  }

  static constexpr int kTokens = 25;
  static constexpr int kSpecTokens = 3;

 private:
  static constexpr int kGiveUp = 4;
  static constexpr int kPreemption = 9;
  static constexpr int kLate = 20;

  // What not every engine has.
  void add_features(int number) {
    adapters_.update(scheduler_);
    auto& drafts = scheduler_.spec_decoding_stats.emplace();
    drafts.num_spec_tokens = kSpecTokens;
    drafts.observe_draft(kSpecTokens, number % (kSpecTokens + 1));
    transfers_.reset();
    transfers_.record_transfer(1500.0 * number, 80.5, 1 << 20, 12);
    if (number % 5 == 0) transfers_.record_failed_notification();
    scheduler_.kv_connector_stats = &transfers_;
    scheduler_.cudagraph_stats = {2, 4, 2, number == 1 ? "NONE" : "FULL"};
    scheduler_.kv_cache_eviction_events = {{.lifetime_seconds = 0.3 * number,
                                            .idle_seconds = 0.1,
                                            .reuse_gaps = {0.05, 0.1},
                                            .num_reuse_gaps = 2}};
    if (number == kPreemption) {
      scheduler_.iteration_details = {.iteration_index = number,
                                      .num_generation_requests = 2,
                                      .num_generation_tokens = 2,
                                      .elapsed_ms = 13.75};
    }
  }

  void give_token(int number, RequestStateStats& request) {
    using Type = EngineCoreEvent::Type;
    const double now = clock_->monotonic();
    std::vector<EngineCoreEvent> events;
    EngineCoreOutput output;
    output.num_new_tokens = 1;
    if (number == 1) {
      events = {{Type::kQueued, now - 0.05}, {Type::kScheduled, now - 0.02}};
      output.prefill_stats = {300, 160, 40};
    } else if (number == kPreemption) {
      events = {{Type::kPreempted, now - 0.03}, {Type::kScheduled, now - 0.01}};
    }
    output.events = events;
    iteration_.update_from_output(output, now, request);
    if (number == kTokens) {
      iteration_.update_from_finished_request(FinishReason::kLength, request);
    }
  }

  const int index_;
  StatLoggerManager& manager_;
  const std::shared_ptr<ScriptedClock> clock_;
  std::array<RequestStateStats, 2> running_;
  RequestStateStats waiting_;
  RequestStateStats late_;
  LoraRequestStates adapters_;
  NixlStats transfers_;
  IterationStats iteration_;
  SchedulerStats scheduler_;
};

// The two engines until their requests have ended, with a log record every ten
// steps.
void run_engines(StatLoggerManager& manager,
                 const std::shared_ptr<ScriptedClock>& clock) {
  manager.log_engine_initialized();
  ScriptedEngine first(0, manager, clock);
  ScriptedEngine second(1, manager, clock);
  for (int number = 1; number <= ScriptedEngine::kTokens; ++number) {
    clock->now += 0.0137 + 0.001 / number;
    first.step(number);
    clock->now += 0.0003;
    second.step(number);
    if (number % 10 == 0) manager.log();
  }
  manager.record_sleep_state({.sleep = 1, .level = 1});
}

}  // namespace

int main(int argc, char** argv) {
  const std::string trace =
      argc > 1 ? argv[1]
               : std::filesystem::temp_directory_path() / "steps.jsonl";
  const auto clock = std::make_shared<ScriptedClock>();

  StatLoggerOptions options;
  options.model_name = "acme/test-7b";
  options.max_model_len = 4096;
  options.engine_indexes = {0, 1};
  options.cache_config = {{"block_size", "16"}, {"note", "a \"quoted\" é"}};
  options.num_gpu_blocks = 512;
  options.max_loras = 2;
  options.num_speculative_tokens = ScriptedEngine::kSpecTokens;
  options.kv_connector = std::make_shared<NixlConnectorMetrics>();
  options.kv_cache_metrics = true;
  options.enable_mfu_metrics = true;
  options.cudagraph = {.mode = "FULL", .capture_sizes = {1, 2, 4}};
  options.clock = clock;
  options.factories.push_back(TraceRecorder::factory(trace));

  auto manager = StatLoggerManager::create(options);
  if (!manager.ok()) {
    std::cerr << manager.status() << '\n';
    return 1;
  }
  run_engines(**manager, clock);
  if (argc > 2) {
    std::ofstream(argv[2]) << TextFormat().render(*(*manager)->registry());
  }
  manager->reset();  // writes what came after the last log()
  std::cout << "recorded " << trace << "; play it with\n  vllm-metrics-replay "
            << trace << '\n';
}
