#include <catch2/catch.hpp>
#include <memory>
#include <sstream>
#include <string>

#include "tests/loggers/surroundings.h"
#include "vllm_metrics/catalogue/catalogue.h"
#include "vllm_metrics/exposition/text_format.h"
#include "vllm_metrics/loggers/nixl_connector_metrics.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"

namespace vllm_metrics {
namespace {

using namespace vllm_metrics::testing;

// Two engines with every feature that has families of its own.
struct Engines : Surroundings {
  Engines() {
    StatLoggerOptions given = options();
    given.engine_indexes = {0, 1};
    given.compute_nans_in_logits = true;
    given.kv_cache_metrics = true;
    given.num_speculative_tokens = 2;
    given.max_loras = 1;
    given.kv_connector = std::make_shared<NixlConnectorMetrics>();
    manager = *StatLoggerManager::create(std::move(given));
    manager->log_engine_initialized();
    clock->advance(60);
    const SchedulerStats scheduler;
    const IterationStats iteration;
    manager->record(&scheduler, &iteration);
  }

  std::string page_with(const TextFormatOptions& given) const {
    return std::string(TextFormat(given).render(*registry));
  }

  std::unique_ptr<StatLoggerManager> manager;
};

// The lines of a page without those of families `..._created`.
std::string without_created(const std::string& page) {
  std::string rest;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    const bool is_comment = line.starts_with("# ");
    const std::size_t from = is_comment ? line.find(' ', 2) + 1 : 0;
    const std::string name =
        line.substr(from, line.find_first_of("{ ", from) - from);
    if (!name.ends_with("_created")) rest += line + "\n";
  }
  return rest;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos;
       at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// They double the page; the switch to turn them off did not always work.
TEST_CASE("_created series: off unless asked for, and then not a trace of them",
          "[loggers]") {
  const Engines engines;
  CHECK(count_of(engines.page(), "_created") == 0);
  CHECK(count_of(engines.page_with({.created_series = false}), "_created") ==
        0);
}

TEST_CASE(
    "_created series: on, each counter and histogram has a gauge family with "
    "the time of its making",
    "[loggers]") {
  const Engines engines;
  const std::string page = engines.page_with({.created_series = true});
  CHECK(count_of(page, "# TYPE vllm:prompt_tokens_created gauge\n") == 1);
  for (const char* engine : {"0", "1"}) {
    CHECK(value(page, std::string("vllm:prompt_tokens_created{engine=\"") +
                          engine + "\",model_name=\"m\"}") == "1.7e+09");
    CHECK(value(page, std::string("vllm:spec_decode_num_accepted_tokens_per_"
                                  "pos_created{engine=\"") +
                          engine + "\",model_name=\"m\",position=\"1\"}") ==
          "1.7e+09");
  }
  for (const MetricSpec& spec : catalogue()) {
    const std::string type = "# TYPE " + std::string(spec.name);
    const std::string sample_type =
        type + (spec.kind == MetricKind::kCounter ? "_total " : " ");
    CAPTURE(type);
    const bool is_shown = count_of(page, sample_type) == 1;
    const bool has_created = count_of(page, type + "_created gauge\n") == 1;
    CHECK(has_created == (is_shown && spec.kind != MetricKind::kGauge));
  }
}

TEST_CASE("_created series: on or off, every other line is the same",
          "[loggers]") {
  const Engines engines;
  const std::string off = engines.page();
  const std::string on = engines.page_with({.created_series = true});
  CHECK(on.size() > off.size());
  CHECK(without_created(on) == off);
}

}  // namespace
}  // namespace vllm_metrics
