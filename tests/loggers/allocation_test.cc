#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "tests/allocation_count.h"
#include "tests/loggers/surroundings.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"

namespace vllm_metrics {
namespace {

using namespace vllm_metrics::testing;

// A step loop of 64 requests, through the request level: each decodes, two end
// in every step and two begin.
class StepLoop {
 public:
  explicit StepLoop(StatLoggerManager& manager, int engines)
      : manager_(manager), engines_(engines), requests_(64) {}

  void step() {
    now_ += 0.01;
    iteration_.reset(now_);
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      const EngineCoreEvent events[] = {
          {EngineCoreEvent::Type::kQueued, now_ - 0.005},
          {EngineCoreEvent::Type::kScheduled, now_ - 0.004}};
      EngineCoreOutput output{.num_new_tokens = 1};
      if (requests_[i].is_prefilling) {
        output.events = events;
        output.prefill_stats = PrefillStats{.num_prompt_tokens = 100};
      }
      iteration_.update_from_output(output, now_, requests_[i]);
      if ((steps_ + i) % 32 == 0) {
        iteration_.update_from_finished_request(FinishReason::kStop,
                                                requests_[i]);
        requests_[i] = RequestStateStats{.arrival_time = now_};
      }
    }
    scheduler_.prefix_cache_stats = {};
    scheduler_.prefix_cache_stats.record(100, 50, false);
    for (int e = 0; e < engines_; ++e) {
      manager_.record(&scheduler_, &iteration_, &mm_cache_, e);
    }
    ++steps_;
  }

 private:
  StatLoggerManager& manager_;
  int engines_;
  double now_ = 1000.0;
  std::size_t steps_ = 0;
  std::vector<RequestStateStats> requests_;
  SchedulerStats scheduler_;
  IterationStats iteration_;
  MultiModalCacheStats mm_cache_;
};

TEST_CASE(
    "allocations: none in a step after the first, none in a page after "
    "the first",
    "[loggers]") {
  const Surroundings around;
  StatLoggerOptions options = around.options();
  options.engine_indexes = {0, 1, 2, 3};
  options.compute_nans_in_logits = true;
  options.kv_cache_metrics = true;
  options.aggregate_engine_logging = GENERATE(false, true);
  const auto manager = *StatLoggerManager::create(options);
  StepLoop loop(*manager, 4);
  TextFormat format;
  for (int i = 0; i < 40; ++i) loop.step();
  format.render(*around.registry);

  CHECK(allocations_of([&] {
          for (int i = 0; i < 2000; ++i) loop.step();
        }) == 0);
  CHECK(allocations_of([&] { format.render(*around.registry); }) == 0);
  CHECK(allocations_of([&] {
          for (int i = 0; i < 20; ++i) {
            loop.step();
            format.render(*around.registry);
          }
        }) == 0);
}

}  // namespace
}  // namespace vllm_metrics
