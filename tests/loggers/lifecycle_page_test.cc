#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>

#include "tests/loggers/surroundings.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"

// The rule of deprecated metrics, on whole pages.
namespace vllm_metrics {
namespace {

using namespace vllm_metrics::testing;

// A family deprecated in 0.20, on the page of a running release.
StatLoggerOptions with_old_family(StatLoggerOptions options,
                                  const std::string& running,
                                  std::optional<std::string> shown_for) {
  options.vllm_version = running;
  options.show_hidden_metrics_for_version = std::move(shown_for);
  options.step_metrics.metrics = {
      {.family = {.name = "engine:old_tokens",
                  .help = "Tokens, counted the old way.",
                  .kind = MetricKind::kCounter},
       .lifecycle = {.deprecated_in = WireVersion{0, 20},
                     .successor = "engine:new_tokens"}},
      {.family = {.name = "engine:new_tokens",
                  .help = "Tokens.",
                  .kind = MetricKind::kCounter}}};
  options.step_metrics.write = [](const StepRecord&, StepWriter& writer) {
    writer.inc(0, 7);
    writer.inc(1, 9);
  };
  return options;
}

std::string page_after_a_step(const std::string& running,
                              std::optional<std::string> shown_for) {
  const Surroundings around;
  const auto manager = *StatLoggerManager::create(
      with_old_family(around.options(), running, std::move(shown_for)));
  const SchedulerStats scheduler;
  manager->record(&scheduler, nullptr);
  return around.page();
}

const std::string kOld = "engine:old_tokens_total";
const std::string kHelp =
    "# HELP engine:old_tokens_total DEPRECATED since 0.20, use "
    "engine:new_tokens: Tokens, counted the old way.\n";

TEST_CASE("page: a family deprecated one release ago is shown when asked for",
          "[loggers]") {
  using Text = std::optional<std::string>;
  const auto [shown_for, is_shown] = GENERATE(table<Text, bool>(
      {{std::nullopt, false}, {"0.20", true}, {"0.19", false}}));
  const std::string page = page_after_a_step("0.21.0", shown_for);
  CHECK(of_engine0(page, kOld) == (is_shown ? "7.0" : "absent"));
  CHECK((page.find(kHelp) != page.npos) == is_shown);
  CHECK((page.find("DEPRECATED") != page.npos) == is_shown);
  // Its successor counts on, whatever became of it.
  CHECK(of_engine0(page, "engine:new_tokens_total") == "9.0");
}

TEST_CASE("page: a release that is none is a configuration error",
          "[loggers]") {
  const Surroundings around;
  CHECK(StatLoggerManager::create(
            with_old_family(around.options(), "0.21.0", "abc"))
            .status()
            .message() ==
        "show_hidden_metrics_for_version = \"abc\" is not a version; allowed: "
        "e.g. \"0.29\"");
  CHECK(StatLoggerManager::create(
            with_old_family(around.options(), "trunk", std::nullopt))
            .status()
            .message() ==
        "vllm_version = \"trunk\" is not a version; allowed: e.g. \"0.30.0\"");
}

TEST_CASE("page: current, deprecated, hidden, gone, release by release",
          "[loggers]") {
  const auto [running, is_shown, is_deprecated] =
      GENERATE(table<std::string, bool, bool>({{"0.19.3", true, false},
                                               {"0.20.0", true, true},
                                               {"0.21.0", false, false},
                                               {"0.22.0", false, false}}));
  const std::string page = page_after_a_step(running, std::nullopt);
  CHECK(of_engine0(page, kOld) == (is_shown ? "7.0" : "absent"));
  CHECK((page.find(kHelp) != page.npos) == is_deprecated);
}

}  // namespace
}  // namespace vllm_metrics
