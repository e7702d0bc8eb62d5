#include "vllm_metrics/primitives/gauge.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

namespace vllm_metrics {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST_CASE("Gauge: starts at 0, is set, rises and falls", "[primitives]") {
  Gauge gauge;
  CHECK(gauge.value() == 0.0);
  gauge.set(0.904);
  CHECK(gauge.value() == 0.904);
  gauge.inc();
  CHECK(gauge.value() == 0.904 + 1.0);
  gauge.set(5.0);
  gauge.inc(2.5);
  gauge.dec();
  gauge.dec(0.25);
  CHECK(gauge.value() == 6.25);
  gauge.dec(10.0);
  CHECK(gauge.value() == -3.75);
}

TEST_CASE("Gauge: holds every double, also those that are not finite",
          "[primitives]") {
  const double v =
      GENERATE(kInf, -kInf, -0.0, 5e-324, std::numeric_limits<double>::max());
  Gauge gauge;
  gauge.set(v);
  CHECK(gauge.value() == v);
  CHECK(std::signbit(gauge.value()) == std::signbit(v));
  gauge.set(std::nan(""));
  CHECK(std::isnan(gauge.value()));
  gauge.set(1.0);
  CHECK(gauge.value() == 1.0);
}

TEST_CASE("Gauge: four threads lose no increment and no decrement",
          "[primitives][concurrent]") {
  constexpr int kThreads = 4;
  constexpr int kTimes = 10'000;
  Gauge gauge;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&gauge] {
      for (int i = 0; i < kTimes; ++i) {
        gauge.inc(2.0);
        gauge.dec(0.5);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(gauge.value() == 1.5 * kThreads * kTimes);
}

}  // namespace
}  // namespace vllm_metrics
