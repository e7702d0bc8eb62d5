#include "vllm_metrics/stats/lora_stats.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "vllm_metrics/stats/iteration_stats.h"
#include "vllm_metrics/stats/scheduler_stats.h"

namespace vllm_metrics {
namespace {

using Phase = LoraRequestStates::Phase;
using Counts = std::vector<std::pair<std::string, std::int64_t>>;

Counts counts_of(const std::vector<LoraAdapterCount>& adapters) {
  Counts counts;
  for (const LoraAdapterCount& adapter : adapters)
    counts.emplace_back(adapter.name, adapter.num_requests);
  return counts;
}

struct Lists {
  explicit Lists(const LoraRequestStates& states) {
    SchedulerStats scheduler;
    scheduler.waiting_lora_adapters = {{"of an earlier step", 9}};
    states.update(scheduler);
    waiting = counts_of(scheduler.waiting_lora_adapters);
    running = counts_of(scheduler.running_lora_adapters);
  }
  Counts waiting;
  Counts running;
};

TEST_CASE("LoRA states: both lists have every adapter with a live request",
          "[stats]") {
  LoraRequestStates states;
  states.move("b", Phase::kNone, Phase::kWaiting);
  states.move("a", Phase::kNone, Phase::kWaiting);
  states.move("b", Phase::kNone, Phase::kWaiting);
  states.move("b", Phase::kWaiting, Phase::kRunning);
  CHECK(Lists(states).waiting == Counts{{"b", 1}, {"a", 1}});
  CHECK(Lists(states).running == Counts{{"b", 1}, {"a", 0}});
}

TEST_CASE(
    "LoRA states: an adapter goes with its last request, and comes last "
    "when it comes again",
    "[stats]") {
  LoraRequestStates states;
  for (const char* name : {"a", "b", "c"})
    states.move(name, Phase::kNone, Phase::kRunning);
  states.move("a", Phase::kRunning, Phase::kNone);
  CHECK(Lists(states).running == Counts{{"b", 1}, {"c", 1}});
  states.move("a", Phase::kNone, Phase::kWaiting);
  CHECK(Lists(states).running == Counts{{"b", 1}, {"c", 1}, {"a", 0}});
  for (const char* name : {"b", "c"})
    states.move(name, Phase::kRunning, Phase::kNone);
  states.move("a", Phase::kWaiting, Phase::kNone);
  CHECK(Lists(states).running.empty());
  CHECK(Lists(states).waiting.empty());
}

TEST_CASE("LoRA states: requests without an adapter are not followed",
          "[stats]") {
  LoraRequestStates states;
  states.move("", Phase::kNone, Phase::kRunning);
  CHECK(Lists(states).running.empty());
}

// An engine's requests of one adapter.
struct Requests {
  RequestStateStats request() {
    RequestStateStats made;
    made.lora_name = "sql";
    made.lora = &states;
    return made;
  }
  void event(EngineCoreEvent::Type type, RequestStateStats& request) {
    const EngineCoreEvent event{type, 1.0};
    iteration.update_from_events({&event, 1}, request);
  }
  // Requests of the adapter that wait, and that run; -1: it is not listed.
  std::pair<std::int64_t, std::int64_t> counts() const {
    const Lists lists(states);
    if (lists.running.empty()) return {-1, -1};
    return {lists.waiting[0].second, lists.running[0].second};
  }

  LoraRequestStates states;
  IterationStats iteration;
};

TEST_CASE("LoRA states: follow a request from queue to end", "[stats]") {
  using Type = EngineCoreEvent::Type;
  using Pair = std::pair<std::int64_t, std::int64_t>;
  Requests requests;
  RequestStateStats request = requests.request();
  CHECK(requests.counts() == Pair{-1, -1});
  requests.event(Type::kQueued, request);
  CHECK(requests.counts() == Pair{1, 0});
  requests.event(Type::kScheduled, request);
  CHECK(requests.counts() == Pair{0, 1});
  requests.event(Type::kPreempted, request);
  CHECK(requests.counts() == Pair{1, 0});
  requests.event(Type::kScheduled, request);
  requests.event(Type::kScheduled, request);
  CHECK(requests.counts() == Pair{0, 1});

  SECTION("it finishes") {
    requests.iteration.update_from_finished_request(FinishReason::kStop,
                                                    request);
  }
  SECTION("it is aborted between two outputs") {
    requests.iteration.update_from_ended_request(FinishReason::kAbort, 2.0,
                                                 request);
  }
  SECTION("it is dropped without a trace") { drop_request(request); }
  CHECK(requests.counts() == Pair{-1, -1});
}

TEST_CASE("LoRA states: a request that ends before it was queued leaves none",
          "[stats]") {
  Requests requests;
  RequestStateStats request = requests.request();
  RequestStateStats other = requests.request();
  requests.event(EngineCoreEvent::Type::kScheduled, other);
  drop_request(request);
  CHECK(requests.counts() == std::pair<std::int64_t, std::int64_t>{0, 1});
}

}  // namespace
}  // namespace vllm_metrics
