#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/tools/sim/engine_core.h"
#include "src/tools/sim/random.h"

namespace vllm_metrics::sim {
namespace {

// An engine, the requests it was given, and steps of one tick each.
class Bench {
 public:
  explicit Bench(std::int64_t num_blocks = KvBlockPool::kUnlimited,
                 SchedulerParameters parameters = {})
      : parameters_(parameters),
        engine_({.block_size = 16, .num_gpu_blocks = num_blocks}, parameters_,
                hardware_) {}

  bool add(std::int64_t id, std::int64_t prompt, std::int64_t output,
           std::vector<std::uint64_t> prefix = {}) {
    auto request = std::make_unique<Request>();
    request->id = id;
    request->spec.prompt_tokens = prompt;
    request->spec.output_tokens = output;
    request->spec.prefix = std::move(prefix);
    return engine_.add_request(std::move(request), now_);
  }

  // One step; returns who got a token, and keeps the events of each.
  std::vector<std::int64_t> step() {
    engine_.begin_step(now_++);
    engine_.end_step();
    std::vector<std::int64_t> ids;
    for (const auto& output : engine_.outputs()) {
      Request& request = *output.request;
      ids.push_back(request.id);
      for (const auto& event : request.events) {
        events_[request.id] += letter(event.type);
      }
      request.events.clear();
      prefill_[request.id] = *request.prefill_stats;
      if (output.finished) finished_.push_back(request.id);
    }
    stats_ = engine_.take_stats();
    return ids;
  }

  EngineCore& engine() { return engine_; }
  SchedulerParameters& parameters() { return parameters_; }
  const SchedulerStats& stats() const { return stats_; }
  const PrefillStats& prefill(std::int64_t id) { return prefill_[id]; }
  const std::string& events(std::int64_t id) { return events_[id]; }
  const std::vector<std::int64_t>& finished() const { return finished_; }

 private:
  static char letter(EngineCoreEvent::Type type) {
    switch (type) {
      case EngineCoreEvent::Type::kQueued:
        return 'q';
      case EngineCoreEvent::Type::kScheduled:
        return 's';
      case EngineCoreEvent::Type::kPreempted:
        return 'p';
    }
    return '?';
  }

  SchedulerParameters parameters_;
  Hardware hardware_;
  EngineCore engine_;
  Ticks now_ = 0;
  SchedulerStats stats_;
  std::map<std::int64_t, std::string> events_;
  std::map<std::int64_t, PrefillStats> prefill_;
  std::vector<std::int64_t> finished_;
};

using Ids = std::vector<std::int64_t>;

TEST_CASE("EngineCore: a request gives a token a step until its end",
          "[tools]") {
  Bench bench;
  CHECK_FALSE(bench.engine().has_requests());
  REQUIRE(bench.add(1, 10, 3));
  CHECK(bench.step() == Ids{1});
  CHECK(bench.stats().num_running_reqs == 1);
  CHECK(bench.step() == Ids{1});
  CHECK(bench.finished().empty());
  CHECK(bench.step() == Ids{1});
  CHECK(bench.finished() == Ids{1});
  CHECK(bench.stats().num_running_reqs == 0);
  CHECK_FALSE(bench.engine().has_requests());
  CHECK(bench.events(1) == "qs");
}

TEST_CASE("EngineCore: a prompt is computed in chunks of the token budget",
          "[tools]") {
  Bench bench(KvBlockPool::kUnlimited, {.max_num_batched_tokens = 100});
  bench.add(1, 250, 2);
  bench.add(2, 40, 2);
  CHECK(bench.step().empty());
  CHECK(bench.stats().num_running_reqs == 1);
  CHECK(bench.stats().num_waiting_reqs == 1);
  CHECK(bench.step().empty());
  // The last 50 tokens leave room for the next prompt.
  CHECK(bench.step() == Ids{1, 2});
}

TEST_CASE("EngineCore: running requests come before waiting ones", "[tools]") {
  Bench bench(KvBlockPool::kUnlimited, {.max_num_batched_tokens = 10});
  bench.add(1, 10, 5);
  CHECK(bench.step() == Ids{1});
  bench.add(2, 18, 5);
  CHECK(bench.step() == Ids{1});  // 9 of the 18
  CHECK(bench.step() == Ids{1, 2});
}

TEST_CASE("EngineCore: no more than max_num_seqs requests run", "[tools]") {
  Bench bench(KvBlockPool::kUnlimited, {.max_num_seqs = 2});
  for (const std::int64_t id : {1, 2, 3}) bench.add(id, 10, 2);
  CHECK(bench.step() == Ids{1, 2});
  CHECK(bench.stats().num_waiting_reqs == 1);
  SECTION("a place becomes free") {
    bench.step();
    CHECK(bench.step() == Ids{3});
  }
  SECTION("the limit is raised between two steps") {
    bench.parameters().max_num_seqs = 3;
    CHECK(bench.step() == Ids{1, 2, 3});
  }
}

TEST_CASE("EngineCore: what can never be served is refused", "[tools]") {
  Bench bench(10, {.max_model_len = 200});
  CHECK(bench.add(1, 150, 11));        // the last token needs no room
  CHECK_FALSE(bench.add(2, 150, 12));  // 161 tokens in 10 blocks of 16
  CHECK_FALSE(bench.add(3, 1, 200));
  CHECK(bench.engine().num_waiting() == 1);
  while (bench.engine().has_requests()) bench.step();
  CHECK(bench.finished() == Ids{1});
}

TEST_CASE("EngineCore: a prefix seen before is not computed again", "[tools]") {
  Bench bench;
  const std::vector<std::uint64_t> text = {11, 12};
  bench.add(1, 1000, 1, text);
  bench.step();
  CHECK(bench.prefill(1).num_local_cached_tokens == 0);
  SECTION("all but the last token, in whole blocks") {
    bench.add(2, 1000, 1, text);
    bench.step();
    CHECK(bench.prefill(2).num_local_cached_tokens == 992);
    CHECK(bench.stats().prefix_cache_stats.queries == 1000);
    CHECK(bench.stats().prefix_cache_stats.hits == 992);
  }
  SECTION("at least one token is computed") {
    bench.add(2, 512, 1, {11});
    bench.step();
    CHECK(bench.prefill(2).num_local_cached_tokens == 496);
  }
  SECTION("as far as the text is the same") {
    bench.add(2, 1000, 1, {11, 99});
    bench.step();
    CHECK(bench.prefill(2).num_local_cached_tokens == 512);
  }
  SECTION("not behind other text") {
    bench.add(2, 1000, 1, {99, 12});
    bench.step();
    CHECK(bench.prefill(2).num_local_cached_tokens == 0);
  }
  SECTION("not when prefix caching is off") {
    bench.parameters().prefix_caching = false;
    bench.add(2, 1000, 1, text);
    bench.step();
    CHECK(bench.prefill(2).num_local_cached_tokens == 0);
    CHECK(bench.stats().prefix_cache_stats.queries == 0);
  }
}

TEST_CASE("EngineCore: requests of one step share a prefix already",
          "[tools]") {
  Bench bench(KvBlockPool::kUnlimited, {.max_num_batched_tokens = 600});
  bench.add(1, 1000, 1, {11, 12});
  bench.add(2, 1000, 1, {11, 12});
  CHECK(bench.step().empty());
  CHECK(bench.step() == Ids{1, 2});
  CHECK(bench.prefill(2).num_local_cached_tokens == 992);
}

TEST_CASE("EngineCore: who was admitted last is preempted first", "[tools]") {
  // Four prompts of one block each fill the pool; the first that needs a
  // second block pushes out the last.
  Bench bench(4);
  for (const std::int64_t id : {1, 2, 3, 4}) bench.add(id, 16, 16);
  CHECK(bench.step() == Ids{1, 2, 3, 4});
  CHECK(bench.stats().kv_cache_usage == 1.0);
  CHECK(bench.step() == Ids{1, 2});
  CHECK(bench.stats().num_running_reqs == 2);
  CHECK(bench.stats().num_waiting_reqs == 2);
  CHECK(bench.stats().kv_cache_usage == 1.0);
  while (bench.engine().has_requests()) bench.step();
  CHECK(bench.finished() == Ids{1, 2, 3, 4});
  CHECK(bench.events(1) == "qs");
  CHECK(bench.events(3) == "qsps");
  CHECK(bench.events(4) == "qsps");
  CHECK(bench.stats().kv_cache_usage == 0.0);
}

TEST_CASE("EngineCore: lookups after a preemption stand apart", "[tools]") {
  Bench bench(4);
  for (const std::int64_t id : {1, 2, 3, 4}) bench.add(id, 16, 16);
  PrefixCacheStats sum;
  while (bench.engine().has_requests()) {
    bench.step();
    const PrefixCacheStats& lookups = bench.stats().prefix_cache_stats;
    sum.requests += lookups.requests;
    sum.queries += lookups.queries;
    sum.preempted_requests += lookups.preempted_requests;
    sum.preempted_queries += lookups.preempted_queries;
  }
  CHECK(sum.requests == 4);
  CHECK(sum.queries == 64);
  CHECK(sum.preempted_requests == 2);
  CHECK(sum.preempted_queries == 34);  // their prompt and one token
}

TEST_CASE("EngineCore: a request finds its own blocks after a preemption",
          "[tools]") {
  // The second has filled two of its three blocks when the first needs one.
  Bench bench(5);
  bench.add(1, 32, 16);
  bench.add(2, 47, 3);
  CHECK(bench.step() == Ids{1, 2});
  CHECK(bench.step() == Ids{1});  // its third block is the second's
  CHECK(bench.stats().num_waiting_reqs == 1);
  std::int64_t hits = 0;
  while (bench.engine().has_requests()) {
    bench.step();
    hits += bench.stats().prefix_cache_stats.preempted_hits;
  }
  CHECK(bench.finished() == Ids{1, 2});
  CHECK(hits == 32);
  CHECK(bench.prefill(2).num_local_cached_tokens == 0);  // of the first time
}

TEST_CASE("EngineCore: every request finishes in a pool that is too small",
          "[tools]") {
  const std::uint64_t seed = GENERATE(range<std::uint64_t>(1, 21));
  Random random(seed);
  const auto up_to = [&random](std::uint64_t n) {
    return static_cast<std::int64_t>(1 + random.next() % n);
  };
  constexpr std::int64_t kBlocks = 32;
  Bench bench(kBlocks, {.max_num_batched_tokens = up_to(300),
                        .max_num_seqs = up_to(20)});
  constexpr std::int64_t kRequests = 200;
  std::int64_t served = 0;
  std::int64_t steps = 0;
  std::int64_t fresh = 0;
  while (fresh < kRequests || bench.engine().has_requests()) {
    if (fresh < kRequests) {
      const bool fits =
          bench.add(fresh++, up_to(600), up_to(40), {up_to(2) == 1 ? 7u : 8u});
      served += fits ? 1 : 0;
      if (!bench.engine().has_requests()) continue;
    }
    bench.step();
    const SchedulerStats& stats = bench.stats();
    REQUIRE(stats.kv_cache_usage <= 1.0);
    REQUIRE(stats.num_running_reqs + stats.num_waiting_reqs +
                std::ssize(bench.finished()) ==
            served);
    REQUIRE(++steps < 1'000'000);
  }
  CHECK(std::ssize(bench.finished()) == served);
  CHECK(served > kRequests / 4);
  CHECK(served < kRequests);
  CHECK(bench.stats().kv_cache_usage == 0.0);
}

TEST_CASE("Hardware: a step takes longer with more to compute or to read",
          "[tools]") {
  const Hardware hardware;
  const auto seconds = [&hardware](std::int64_t requests, std::int64_t n,
                                   std::int64_t context) {
    StepShape shape;
    for (std::int64_t i = 0; i < requests; ++i) shape.add(n, context);
    return to_seconds(step_duration(hardware, shape));
  };
  // One decode reads all weights: 16.06 GB at 2.68 TB/s, and 1.504 ms.
  CHECK(seconds(1, 1, 0) == Approx(0.001504 + 16.06e9 / 2.68e12).margin(2e-6));
  // Many tokens are bound by arithmetic: 2 x 8.03e9 each, and attention.
  const double flops =
      16.06e9 * 8192 + 4.0 * 32 * 32 * 128 * 8192.0 * 8193.0 / 2.0;
  CHECK(seconds(1, 8192, 0) ==
        Approx(0.001504 + flops / (989e12 * 0.55)).margin(2e-6));
  CHECK(seconds(64, 1, 1000) > seconds(1, 1, 1000));
  CHECK(seconds(64, 1, 10000) > seconds(64, 1, 1000));
  CHECK(hardware.num_gpu_blocks(16) == 24766);
}

}  // namespace
}  // namespace vllm_metrics::sim
