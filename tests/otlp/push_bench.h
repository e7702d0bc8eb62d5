#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "src/otlp/metrics_push.h"
#include "tests/loggers/surroundings.h"
#include "tests/otlp/received.h"

namespace vllm_metrics::otlp {

inline constexpr std::uint64_t kSecond = 1'000'000'000;

// A registry, its push and the collector.
struct PushBench {
  explicit PushBench(Temporality temporality = Temporality::kCumulative,
                     bool exponential = true, Settings settings = {})
      : PushBench(Registry::create(), temporality, exponential, settings) {}
  explicit PushBench(std::shared_ptr<Registry> pushed,
                     Temporality temporality = Temporality::kCumulative,
                     bool exponential = true, Settings settings = {})
      : registry(std::move(pushed)) {
    settings.url = "http://c/v1/metrics";
    settings.resource = {{"service.name", "engine"}};
    settings.temporality = temporality;
    auto metrics = ExporterMetrics::create(*registry, Signal::kMetrics, log);
    REQUIRE(metrics.ok());
    Delivery delivery(settings, transport, clock, [this](double seconds) {
      clock->advance(seconds);
      return true;
    });
    push =
        std::make_unique<MetricsPush>(registry, settings, exponential, clock,
                                      std::move(delivery), *std::move(metrics));
  }
  bool run() {
    const bool taken = push->run(30.0);
    clock->advance(60.0);
    return taken;
  }
  testing::Received last() const {
    return testing::read_request(transport->bodies.back());
  }
  testing::Point point(const std::string& metric) const {
    const testing::Received received = last();
    REQUIRE(received.metrics.contains(metric));
    return received.metrics.at(metric).points.at(0);
  }

  std::shared_ptr<testing::ManualClock> clock =
      std::make_shared<testing::ManualClock>();
  std::shared_ptr<Registry> registry;
  std::shared_ptr<testing::CapturedLog> log =
      std::make_shared<testing::CapturedLog>();
  std::shared_ptr<testing::ScriptedTransport> transport =
      std::make_shared<testing::ScriptedTransport>();
  std::unique_ptr<MetricsPush> push;
};

}  // namespace vllm_metrics::otlp
