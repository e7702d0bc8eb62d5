#include <catch2/catch.hpp>
#include <csignal>
#include <limits>

#include "src/tools/sim/real_time.h"

namespace vllm_metrics::sim {
namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();

TEST_CASE("RealTime: the end of a child ends a sleep only where that is wanted",
          "[tools]") {
  RealTime alone(1.0);
  std::raise(SIGCHLD);
  alone.sleep(0.01);
  CHECK(alone.elapsed_seconds() >= 0.01);
  {
    RealTime time(1.0, ChildEnd::kWakes);
    std::raise(SIGCHLD);
    time.sleep(kForever);  // or this test never ends
    CHECK_FALSE(time.interrupted());
  }
}

TEST_CASE(
    "RealTime: a linger lasts until its time or Ctrl-C, whatever wakes it",
    "[tools]") {
  RealTime time(1.0, ChildEnd::kWakes);
  std::raise(SIGCHLD);
  time.linger(0.01);
  CHECK(time.elapsed_seconds() >= 0.01);
  CHECK_FALSE(time.interrupted());

  std::raise(SIGINT);
  time.linger(kForever);
  CHECK(time.interrupted());
  time.linger(kForever);
}

}  // namespace
}  // namespace vllm_metrics::sim
