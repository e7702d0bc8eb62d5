#include <catch2/catch.hpp>
#include <vector>

#include "src/tools/sim/latency_tally.h"
#include "src/tools/sim/virtual_time.h"
#include "src/tools/sim/workload.h"

namespace vllm_metrics::sim {
namespace {

std::vector<RequestSpec> draw(const SyntheticWorkload::Options& options,
                              std::uint64_t seed, std::size_t n) {
  SyntheticWorkload workload(options, seed);
  std::vector<RequestSpec> out;
  while (out.size() < n) {
    auto spec = workload.next();
    if (!spec.has_value()) break;
    out.push_back(*std::move(spec));
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
  for (const auto& spec : draw({.prompt_tokens = 1000.0,
                          .output_tokens = 1000.0,
                          .max_tokens = 512},
                               1, 1000)) {
    CHECK(spec.prompt_tokens + spec.output_tokens <= 512);
  }
}

TEST_CASE("SyntheticWorkload: nothing arrives from its end on", "[tools]") {
  const auto specs = draw({.rate = 100.0, .end = kTicksPerSecond}, 1, 10000);
  CHECK(specs.size() > 50);
  CHECK(specs.size() < 200);
  CHECK(specs.back().arrival < kTicksPerSecond);
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
