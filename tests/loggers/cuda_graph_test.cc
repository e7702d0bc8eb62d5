#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/loggers/surroundings.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"

namespace vllm_metrics {
namespace {

using namespace vllm_metrics::testing;

// An engine that says how its steps were padded and run.
class GraphEngine : public Surroundings {
 public:
  explicit GraphEngine(std::optional<CudaGraphConfig> config) {
    StatLoggerOptions given = options();
    given.cudagraph = std::move(config);
    manager_ = *StatLoggerManager::create(std::move(given));
  }

  void record(const CudaGraphStat& stat) {
    SchedulerStats scheduler;
    scheduler.cudagraph_stats = stat;
    manager_->record(&scheduler, nullptr);
  }
  // The record behind the main one; empty when there is none.
  std::string logged() {
    log->lines.clear();
    manager_->log();
    return log->lines.size() < 2 ? std::string() : log->lines[1];
  }

 private:
  std::unique_ptr<StatLoggerManager> manager_;
};

TEST_CASE("CUDA graph table: rows by falling count, then by appearance",
          "[loggers]") {
  GraphEngine engine(
      CudaGraphConfig{"FULL_AND_PIECEWISE", {1, 2, 4, 8, 16384}});
  engine.record({7, 8, 1, "PIECEWISE"});
  engine.record({7, 8, 1, "FULL"});
  engine.record({12000, 16384, 4384, "NONE"});
  engine.record({7, 8, 1, "FULL"});
  engine.record({2, 2, 0, "FULL"});
  CHECK(engine.logged() ==
        "DEBUG **CUDAGraph Config Settings:**\n"
        "\n"
        "- Mode: FULL_AND_PIECEWISE\n"
        "- Capture sizes: [1, 2, 4, 8, 16384]\n"
        "\n"
        "**CUDAGraph Stats:**\n"
        "\n"
        "| Unpadded Tokens | Padded Tokens | Num Paddings | Runtime Mode | "
        "Count |\n"
        "|-----------------|---------------|--------------|--------------|"
        "-------|\n"
        "| 7               | 8             | 1            | FULL         | "
        "2     |\n"
        "| 7               | 8             | 1            | PIECEWISE    | "
        "1     |\n"
        "| 12000           | 16384         | 4384         | NONE         | "
        "1     |\n"
        "| 2               | 2             | 0            | FULL         | "
        "1     |\n");
  CHECK(engine.logged().empty());  // cleared when it was shown
}

TEST_CASE("CUDA graph table: wide cells widen their column, no sizes are []",
          "[loggers]") {
  GraphEngine engine(CudaGraphConfig{.mode = "NONE"});
  engine.record({1, 1, 0, "A_MODE_WITH_A_LONG_NAME"});
  CHECK(engine.logged() ==
        "DEBUG **CUDAGraph Config Settings:**\n"
        "\n"
        "- Mode: NONE\n"
        "- Capture sizes: []\n"
        "\n"
        "**CUDAGraph Stats:**\n"
        "\n"
        "| Unpadded Tokens | Padded Tokens | Num Paddings | Runtime Mode      "
        "      | Count |\n"
        "|-----------------|---------------|--------------|-------------------"
        "------|-------|\n"
        "| 1               | 1             | 0            | "
        "A_MODE_WITH_A_LONG_NAME | 1     |\n");
}

// A new mode's row was counted under a place that did not exist.
TEST_CASE("CUDA graph table: every mode keeps its own rows", "[loggers]") {
  GraphEngine engine(CudaGraphConfig{.mode = "FULL"});
  std::vector<std::string> modes;
  for (int i = 0; i < 40; ++i) modes.push_back("MODE" + std::to_string(i));
  for (int round = 0; round < 3; ++round) {
    for (const std::string& mode : modes) engine.record({4, 8, 4, mode});
  }
  const std::string table = engine.logged();
  for (const std::string& mode : modes) {
    CAPTURE(mode);
    CHECK(table.find("| 4               | 8             | 4            | " +
                     mode + std::string(12 - mode.size(), ' ') +
                     " | 3     |\n") != table.npos);
  }
}

TEST_CASE("CUDA graph table: none without the configuration", "[loggers]") {
  GraphEngine engine(std::nullopt);
  engine.record({1, 1, 0, "FULL"});
  CHECK(engine.logged().empty());
}

}  // namespace
}  // namespace vllm_metrics
