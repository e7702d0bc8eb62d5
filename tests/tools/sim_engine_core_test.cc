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
                 SchedulerParameters scheduler = {},
                 void (*change)(EngineParameters&) = nullptr)
      : scheduler_(scheduler),
        parameters_(parameters_of(num_blocks, change)),
        cost_(*StepCostModel::create(parameters_)),
        engine_(parameters_, scheduler_, cost_, 1) {}

  bool add(std::int64_t id, std::int64_t prompt, std::int64_t output,
           std::vector<std::uint64_t> prefix = {}) {
    auto request = std::make_unique<Request>();
    request->id = id;
    request->spec.prompt_tokens = prompt;
    request->spec.output_tokens = output;
    request->spec.prefix = std::move(prefix);
    request->spec.give_up = give_up_;
    return engine_.add_request(std::move(request), now_);
  }

  // The clients of later requests go at this tick.
  void give_up_at(Ticks tick) { give_up_ = tick; }

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
      tokens_[request.id] += output.num_new_tokens;
      if (output.finished) finished_.push_back(request.id);
    }
    stats_ = engine_.take_stats();
    return ids;
  }

  EngineCore& engine() { return engine_; }
  Ticks now() const { return now_; }
  void advance_to(Ticks now) { now_ = now; }
  SchedulerParameters& scheduler() { return scheduler_; }
  EngineParameters& parameters() { return parameters_; }
  std::int64_t tokens(std::int64_t id) { return tokens_[id]; }
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

  static EngineParameters parameters_of(std::int64_t num_blocks,
                                        void (*change)(EngineParameters&)) {
    EngineParameters out;
    out.num_gpu_blocks = num_blocks;
    if (change != nullptr) change(out);
    return out;
  }

  SchedulerParameters scheduler_;
  EngineParameters parameters_;
  StepCostModel cost_;
  EngineCore engine_;
  Ticks give_up_ = kNever;
  std::map<std::int64_t, std::int64_t> tokens_;
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
    bench.scheduler().max_num_seqs = 3;
    CHECK(bench.step() == Ids{1, 2, 3});
  }
}

TEST_CASE("EngineCore: what can never be served is refused", "[tools]") {
  Bench bench(10, {},
              [](EngineParameters& engine) { engine.max_model_len = 200; });
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
    bench.parameters().enable_prefix_caching = false;
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

TEST_CASE("EngineCore: a cap on active requests counts when it is lower",
          "[tools]") {
  Bench bench(KvBlockPool::kUnlimited,
              {.max_num_seqs = 3, .max_num_active_seqs = 2});
  for (std::int64_t id = 1; id <= 4; ++id) bench.add(id, 10, 5);
  CHECK(bench.step() == Ids{1, 2});
  bench.scheduler().max_num_active_seqs = 9;
  CHECK(bench.step() == Ids{1, 2, 3});
}

TEST_CASE("EngineCore: a long prompt leaves room beside its threshold",
          "[tools]") {
  Bench bench(KvBlockPool::kUnlimited, {.max_num_batched_tokens = 100,
                                        .long_prefill_token_threshold = 60});
  bench.add(1, 180, 2);
  bench.add(2, 40, 3);
  CHECK(bench.step() == Ids{2});  // 60 of the 180, and all of the 40
  CHECK(bench.step() == Ids{2});
  CHECK(bench.step() == Ids{1, 2});
}

TEST_CASE("EngineCore: accepted drafts are tokens of the same step",
          "[tools]") {
  Bench bench(KvBlockPool::kUnlimited, {.acceptance_rate = 1.0},
              [](EngineParameters& engine) { engine.speculative_tokens = 3; });
  bench.add(1, 10, 8);
  bench.step();
  CHECK(bench.tokens(1) == 1);  // a prompt drafts nothing
  bench.step();
  CHECK(bench.tokens(1) == 5);
  REQUIRE(bench.stats().spec_decoding_stats.has_value());
  const SpecDecodingStats drafts = *bench.stats().spec_decoding_stats;
  CHECK(drafts.num_drafts == 1);
  CHECK(drafts.num_draft_tokens == 3);
  CHECK(drafts.num_accepted_tokens_per_pos ==
        std::vector<std::int64_t>{1, 1, 1});
  bench.step();  // two drafts: nothing is drafted past the end
  CHECK(bench.tokens(1) == 8);
  CHECK(bench.stats().spec_decoding_stats->num_draft_tokens == 2);
  CHECK(bench.finished() == Ids{1});
}

TEST_CASE("EngineCore: refused drafts are computed again", "[tools]") {
  Bench bench(4, {.acceptance_rate = 0.0},
              [](EngineParameters& engine) { engine.speculative_tokens = 5; });
  REQUIRE(bench.add(1, 30, 34));
  for (int i = 0; i < 34; ++i) CHECK(bench.step() == Ids{1});
  CHECK(bench.finished() == Ids{1});
}

TEST_CASE("EngineCore: a transferred prompt is deferred until it is there",
          "[tools]") {
  Bench bench(1000, {}, [](EngineParameters& engine) {
    engine.kv_transfer = true;
    engine.kv_transfer_bandwidth = 1.0;
  });
  bench.add(1, 160, 3);
  const Ticks arrival = bench.engine().begin_step(0);
  bench.engine().end_step();
  CHECK(bench.engine().outputs().empty());
  const SchedulerStats& stats = bench.engine().take_stats();
  CHECK(stats.num_running_reqs == 0);
  CHECK(stats.num_waiting_reqs == 0);
  CHECK(stats.num_skipped_waiting_reqs == 1);
  CHECK(stats.kv_cache_usage == 0.01);
  // 10 blocks of 2 MiB at 1 GB/s, and half a millisecond before.
  CHECK(to_seconds(arrival) ==
        Approx(0.0005 + 10 * 2097152 / 1e9).margin(1e-5));
  const auto& transfers =
      dynamic_cast<const NixlStats&>(*stats.kv_connector_stats);
  CHECK(transfers.bytes_transferred == std::vector<std::int64_t>{20971520});
  CHECK(transfers.num_descriptors == std::vector<std::int64_t>{320});
  bench.advance_to(arrival);
  CHECK(bench.step() == Ids{1});
  CHECK(bench.events(1) == "qs");
  CHECK(bench.prefill(1).num_external_cached_tokens == 159);
  CHECK(bench.prefill(1).num_computed_tokens() == 1);
}

TEST_CASE("EngineCore: transfers that hold all blocks end in progress",
          "[tools]") {
  Bench bench(12, {},
              [](EngineParameters& engine) { engine.kv_transfer = true; });
  for (std::int64_t id = 1; id <= 6; ++id) REQUIRE(bench.add(id, 60, 100));
  for (int i = 0; i < 5000 && bench.engine().has_requests(); ++i) {
    bench.advance_to(bench.now() + kTicksPerSecond / 100);
    bench.step();
  }
  CHECK(bench.finished().size() == 6);
}

TEST_CASE("EngineCore: what the GPU gave up comes back from the CPU",
          "[tools]") {
  Bench bench(6, {}, [](EngineParameters& engine) {
    engine.kv_offload = kOffloadNative;
  });
  const auto serve = [&bench](std::int64_t id, std::uint64_t text) {
    REQUIRE(bench.add(id, 80, 1, {text}));
    KvFetchStages seen;
    while (bench.engine().has_requests()) {
      bench.step();
      seen.in_progress += bench.stats().kv_fetch_stages.in_progress;
      bench.advance_to(bench.now() + kTicksPerSecond);
    }
    return seen;
  };
  CHECK(serve(1, 7).in_progress == 0);
  CHECK(serve(2, 8).in_progress == 0);  // takes blocks that 1 left behind
  // At least one token is computed: 4 of 5 blocks. Those still there are found.
  CHECK(serve(3, 7).in_progress > 0);
  const PrefillStats& prefill = bench.prefill(3);
  CHECK(prefill.num_host_cached_tokens > 0);
  CHECK(prefill.num_host_cached_tokens == prefill.num_external_cached_tokens);
  CHECK(prefill.num_cached_tokens() == 64);
  CHECK(bench.finished() == Ids{1, 2, 3});
}

TEST_CASE("EngineCore: with several connectors each tells its part",
          "[tools]") {
  Bench bench(100, {}, [](EngineParameters& engine) {
    engine.kv_transfer = true;
    engine.kv_offload = kOffloadBoth;
  });
  bench.add(1, 160, 3);
  bench.engine().begin_step(0);
  bench.engine().end_step();
  const SchedulerStats& stats = bench.engine().take_stats();
  const auto& parts =
      dynamic_cast<const MultiConnectorStats&>(*stats.kv_connector_stats).parts;
  REQUIRE(parts.size() == 3);
  CHECK(parts[0]->connector() == "nixl");
  CHECK(parts[1]->connector() == "offloading");
  CHECK(parts[2]->connector() == "simple_offload");
  CHECK(stats.kv_fetch_stages.in_progress == 1);
  CHECK(stats.kv_fetch_stages.waiting_to_start == 0);
}

TEST_CASE("EngineCore: a client that has gone takes its request along",
          "[tools]") {
  Bench bench(10, {.max_num_seqs = 1});
  bench.add(1, 30, 100);
  bench.give_up_at(3);
  bench.add(2, 30, 100);
  bench.step();
  CHECK(bench.engine().take_abandoned(2).empty());
  CHECK(bench.engine().num_waiting() == 1);
  const auto gone = bench.engine().take_abandoned(3);
  REQUIRE(gone.size() == 1);
  CHECK(gone[0]->id == 2);
  CHECK(bench.engine().num_waiting() == 0);
  CHECK(bench.step() == Ids{1});
}

}  // namespace
}  // namespace vllm_metrics::sim
