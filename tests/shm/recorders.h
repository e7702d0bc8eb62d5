#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "vllm_metrics/loggers/options.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"
#include "vllm_metrics/registry/registry.h"

// How often a loop of faults runs: `few` in a test, `many` in a soak
// (VLLM_METRICS_SOAK=1, `./dev soak`).
inline int times(int few, int many) {
  const char* const soak = std::getenv("VLLM_METRICS_SOAK");
  return soak != nullptr && *soak == '1' ? many : few;
}

class WallClock final : public vllm_metrics::Clock {
 public:
  explicit WallClock(double wall) : now(wall) {}
  double wall() const noexcept override { return now; }
  double monotonic() const noexcept override { return now; }

  double now;
};

inline vllm_metrics::StatLoggerOptions options_on(
    const std::shared_ptr<vllm_metrics::Registry>& registry,
    double wall = 1.0) {
  vllm_metrics::StatLoggerOptions options;
  options.model_name = "m";
  options.max_model_len = 1024;
  options.default_loggers = false;
  options.registry = registry;
  options.clock = std::make_shared<WallClock>(wall);
  return options;
}

inline std::unique_ptr<vllm_metrics::StatLoggerManager> manager_of(
    vllm_metrics::StatLoggerOptions options) {
  auto made = vllm_metrics::StatLoggerManager::create(std::move(options));
  INFO(made.status());
  REQUIRE(made.ok());
  return *std::move(made);
}

// A step with one request that ends, `kLatencies` tokens and 10 prompt tokens.
inline constexpr int kLatencies = 256;
inline constexpr int kPromptTokens = 10;

inline vllm_metrics::IterationStats a_step() {
  vllm_metrics::IterationStats step;
  step.prompt_token_stats.total = kPromptTokens;
  for (int i = 0; i < kLatencies; ++i)
    step.inter_token_latencies_iter.push_back(0.001 * (i % 97));
  auto& finished = step.finished_requests.emplace_back();
  finished.e2e_latency = 1.5;
  finished.num_prompt_tokens = kPromptTokens;
  return step;
}

// The labels of an engine's series.
inline std::string of_engine(const std::string& name) {
  return name + R"({engine="0",model_name="m"})";
}
