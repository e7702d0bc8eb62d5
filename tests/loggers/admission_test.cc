#include <catch2/catch.hpp>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/allocation_counter.h"
#include "tests/loggers/surroundings.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"

namespace vllm_metrics {
namespace {

using namespace vllm_metrics::testing;

std::string rejections(const std::string& page, const std::string& reason) {
  return value(page,
               "vllm:admission_rejections_total{model_name=\"m\",reason=\"" +
                   reason + "\"}");
}

StatLoggerOptions of_release(const Surroundings& around, WireVersion release) {
  StatLoggerOptions options = around.options();
  options.wire_version = release;
  options.engine_indexes = {0, 1};
  return options;
}

TEST_CASE("admission: one count for each refused attempt, by its limit",
          "[loggers]") {
  const Surroundings around;
  const auto manager = *StatLoggerManager::create(of_release(around, {0, 32}));
  CHECK(rejections(around.page(), "max_num_queued_reqs") == "0.0");
  CHECK(rejections(around.page(), "max_num_queued_tokens") == "0.0");
  manager->record_admission_rejection(AdmissionLimit::kQueuedRequests);
  manager->record_admission_rejection(AdmissionLimit::kQueuedTokens);
  manager->record_admission_rejection(AdmissionLimit::kQueuedTokens);
  CHECK(rejections(around.page(), "max_num_queued_reqs") == "1.0");
  CHECK(rejections(around.page(), "max_num_queued_tokens") == "2.0");
}

TEST_CASE(
    "admission: an older release has no such family, and the call does "
    "no harm",
    "[loggers]") {
  const Surroundings around;
  const auto manager = *StatLoggerManager::create(of_release(around, {0, 31}));
  manager->record_admission_rejection(AdmissionLimit::kQueuedRequests);
  CHECK(around.page().find("admission_rejections") == std::string::npos);
}

TEST_CASE("admission: from many threads, none is lost, nothing is allocated",
          "[loggers]") {
  const Surroundings around;
  const auto manager = *StatLoggerManager::create(of_release(around, {0, 32}));
  constexpr int kThreads = 4;
  constexpr int kEach = 5'000;
  const auto refuse = [&] {
    for (int i = 0; i < kEach; ++i)
      manager->record_admission_rejection(AdmissionLimit::kQueuedRequests);
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(refuse);
  const SchedulerStats scheduler;
  for (int i = 0; i < 1000; ++i) manager->record(&scheduler, nullptr);
  for (std::thread& thread : threads) thread.join();
  CHECK(rejections(around.page(), "max_num_queued_reqs") == "20000.0");
  CHECK(allocations_of(refuse) == 0);
}

// Hears of refusals, and throws at each.
class ThrowingLogger final : public StatLoggerBase {
 public:
  std::string_view name() const override { return "throwing"; }
  void record(const StepRecord&) override {}
  void record_admission_rejection(AdmissionLimit) override {
    throw std::runtime_error("no");
  }
};

TEST_CASE(
    "admission: custom loggers hear of it, and one that throws is "
    "contained",
    "[loggers]") {
  const Surroundings around;
  StatLoggerOptions options = of_release(around, {0, 32});
  options.factories.push_back(AggregateStatLoggerFactory(
      [](const StatLoggerOptions&)
          -> absl::StatusOr<std::unique_ptr<StatLoggerBase>> {
        return std::make_unique<ThrowingLogger>();
      }));
  const auto manager = *StatLoggerManager::create(options);
  manager->record_admission_rejection(AdmissionLimit::kQueuedTokens);
  CHECK(rejections(around.page(), "max_num_queued_tokens") == "1.0");
  CHECK(value(around.page(),
              "vllm_metrics_logger_errors_total{logger=\"throwing\",model_name="
              "\"m\"}") == "1.0");
}

}  // namespace
}  // namespace vllm_metrics
