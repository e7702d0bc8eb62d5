#include <catch2/catch.hpp>
#include <vector>

#include "src/tools/sim/latency_tally.h"
#include "src/tools/sim/virtual_time.h"
#include "src/tools/sim/workload.h"

namespace vllm_metrics::sim {
namespace {

std::vector<RequestSpec> draw(const WorkloadParameters& parameters,
                              std::uint64_t seed, std::size_t n,
                              const SyntheticWorkload::Limits& limits = {}) {
  SyntheticWorkload workload(parameters, limits, seed);
  std::vector<RequestSpec> out;
  while (out.size() < n && workload.next_arrival() != kNever) {
    const Ticks arrival = workload.next_arrival();
    out.push_back(workload.take());
    CHECK(out.back().arrival == arrival);
  }
  return out;
}

TEST_CASE("SyntheticWorkload: one seed, one sequence", "[tools]") {
  const auto a = draw({}, 5, 100);
  const auto b = draw({}, 5, 100);
  const auto c = draw({}, 6, 100);
  REQUIRE(a.size() == 100);
  std::size_t same = 0;
  for (std::size_t i = 0; i < 100; ++i) {
    CHECK(a[i].arrival == b[i].arrival);
    CHECK(a[i].prompt_tokens == b[i].prompt_tokens);
    CHECK(a[i].output_tokens == b[i].output_tokens);
    CHECK(a[i].prefix == b[i].prefix);
    CHECK(a[i].finish_reason == b[i].finish_reason);
    if (a[i].arrival == c[i].arrival) ++same;
  }
  CHECK(same < 5);
}

TEST_CASE("SyntheticWorkload: rate, means and prefix share are as asked",
          "[tools]") {
  constexpr std::size_t kMany = 20000;
  const auto specs = draw({.rate = 8.0,
                           .prompt_tokens = 500.0,
                           .output_tokens = 100.0,
                           .prefix_share = 0.5},
                          1, kMany);
  double prompt = 0.0;
  double output = 0.0;
  double shared = 0.0;
  Ticks before = 0;
  for (const RequestSpec& spec : specs) {
    REQUIRE(spec.arrival >= before);
    before = spec.arrival;
    REQUIRE(spec.max_tokens.has_value());
    const bool stop = spec.finish_reason == FinishReason::kStop;
    REQUIRE((stop ? spec.output_tokens < *spec.max_tokens
                  : spec.output_tokens == *spec.max_tokens));
    prompt += static_cast<double>(spec.prompt_tokens);
    output += static_cast<double>(spec.output_tokens);
    shared += static_cast<double>(spec.prefix.size()) *
              static_cast<double>(spec.chunk_tokens);
  }
  CHECK(to_seconds(before) == Approx(kMany / 8.0).epsilon(0.03));
  CHECK(prompt / kMany == Approx(500.0).epsilon(0.03));
  CHECK(output / kMany == Approx(100.0).epsilon(0.03));
  // Whole chunks of 64 tokens: some less than a half.
  CHECK(shared / prompt > 0.40);
  CHECK(shared / prompt <= 0.50);
}

TEST_CASE("SyntheticWorkload: a request never exceeds the model's length",
          "[tools]") {
  for (const auto& spec :
       draw({.prompt_tokens = 1000.0, .output_tokens = 1000.0}, 1, 1000,
            {.max_tokens = 512})) {
    CHECK(spec.prompt_tokens + spec.output_tokens <= 512);
  }
}

TEST_CASE("SyntheticWorkload: nothing arrives from its end on", "[tools]") {
  const auto specs = draw({.rate = 100.0}, 1, 10000, {.end = kTicksPerSecond});
  CHECK(specs.size() > 50);
  CHECK(specs.size() < 200);
  CHECK(specs.back().arrival < kTicksPerSecond);
}

TEST_CASE("SyntheticWorkload: a client asks again once it has its answer",
          "[tools]") {
  SyntheticWorkload workload({.concurrency = 3, .think_time = 5.0}, {}, 1);
  std::vector<RequestSpec> specs;
  while (workload.next_arrival() != kNever) specs.push_back(workload.take());
  REQUIRE(specs.size() == 3);
  const Ticks now = 100 * kTicksPerSecond;
  workload.ended(specs[1], now);
  REQUIRE(workload.next_arrival() != kNever);
  CHECK(workload.next_arrival() > now);
  CHECK(workload.take().client == specs[1].client);
  CHECK(workload.next_arrival() == kNever);
}

TEST_CASE("SyntheticWorkload: a turn begins with all that was said before",
          "[tools]") {
  SyntheticWorkload workload(
      {.concurrency = 1, .turns = 4, .prompt_tokens = 300.0}, {}, 1);
  RequestSpec before = workload.take();
  for (int turn = 2; turn <= 4; ++turn) {
    workload.ended(before, before.arrival + kTicksPerSecond);
    RequestSpec spec = workload.take();
    const std::int64_t said = before.prompt_tokens + before.output_tokens;
    CHECK(spec.prompt_tokens > said);
    CHECK(before.known_tokens == said);
    const auto whole = static_cast<std::size_t>(said / spec.chunk_tokens);
    REQUIRE(before.prefix.size() >= whole);
    for (std::size_t i = 0; i < whole; ++i) {
      CHECK(spec.prefix[i] == before.prefix[i]);
    }
    before = std::move(spec);
  }
  workload.ended(before, before.arrival + kTicksPerSecond);
  const RequestSpec next = workload.take();  // another conversation
  CHECK(next.prompt_tokens < before.prompt_tokens);
  CHECK(next.prefix.back() != before.prefix[next.prefix.size() - 1]);
}

TEST_CASE("SyntheticWorkload: other parameters hold from then on", "[tools]") {
  SyntheticWorkload workload({.rate = 0.001}, {}, 1);
  workload.apply({.rate = 1000.0}, kTicksPerSecond);
  CHECK(workload.next_arrival() > kTicksPerSecond);
  CHECK(workload.next_arrival() < 2 * kTicksPerSecond);

  workload.apply({.concurrency = 5}, kTicksPerSecond);
  std::vector<RequestSpec> specs;
  while (workload.next_arrival() != kNever) specs.push_back(workload.take());
  CHECK(specs.size() == 5);
  workload.apply({.concurrency = 2}, 3 * kTicksPerSecond);
  for (const RequestSpec& spec : specs) {
    workload.ended(spec, 3 * kTicksPerSecond);
  }
  specs.clear();
  while (workload.next_arrival() != kNever) specs.push_back(workload.take());
  CHECK(specs.size() == 2);
}

TEST_CASE("SyntheticWorkload: long prompts, patience and NaNs by their share",
          "[tools]") {
  std::size_t long_prompts = 0;
  std::size_t corrupted = 0;
  std::size_t cut = 0;
  for (const RequestSpec& spec : draw({.prompt_tokens = 100.0,
                                 .prompt_spread = 0.0,
                                 .long_prompt_share = 0.25,
                                 .long_prompt_tokens = 5000.0,
                                 .length_share = 0.5,
                                 .patience = 3.0,
                                 .corrupted_share = 0.1},
                                      1, 4000)) {
    long_prompts += spec.prompt_tokens == 5000 ? 1 : 0;
    CHECK((spec.prompt_tokens == 5000 || spec.prompt_tokens == 100));
    corrupted += spec.corrupted ? 1 : 0;
    cut += spec.finish_reason == FinishReason::kLength ? 1 : 0;
    CHECK(spec.give_up == spec.arrival + 3 * kTicksPerSecond);
  }
  CHECK(long_prompts == Approx(1000).epsilon(0.1));
  CHECK(corrupted == Approx(400).epsilon(0.15));
  CHECK(cut == Approx(2000).epsilon(0.1));
}

TEST_CASE("Virtual time: the wall clock keeps every tick", "[tools]") {
  VirtualClock clock(Workload::kDefaultEpoch + 12345);
  const double begin = clock.wall();
  for (const Ticks ticks :
       {Ticks{1}, Ticks{3}, Ticks{1048577}, Ticks{1} << 50}) {
    clock.advance_to(ticks);
    CHECK(clock.wall() - begin == to_seconds(ticks));
    CHECK(clock.monotonic() == to_seconds(ticks));
  }
}

TEST_CASE("LatencyTally: quantiles are values that occurred", "[tools]") {
  LatencyTally tally;
  CHECK(tally.quantile_seconds(0.5) == 0.0);
  CHECK(tally.mean_seconds() == 0.0);
  tally.add(4 * kTicksPerSecond);
  tally.add(1 * kTicksPerSecond, 2);
  tally.add(9 * kTicksPerSecond);
  CHECK(tally.count() == 4);
  CHECK(tally.mean_seconds() == 3.75);
  CHECK(tally.quantile_seconds(0.0) == 1.0);
  CHECK(tally.quantile_seconds(0.5) == 1.0);
  CHECK(tally.quantile_seconds(0.51) == 4.0);
  CHECK(tally.quantile_seconds(0.75) == 4.0);
  CHECK(tally.quantile_seconds(0.99) == 9.0);
  CHECK(tally.quantile_seconds(1.0) == 9.0);
}

}  // namespace
}  // namespace vllm_metrics::sim
