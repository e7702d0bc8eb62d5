// Does each piece of work under callgrind, which counts its instructions:
// bench/count_instructions.py runs this program and compares the counts with
// bench/instruction_budget.txt.

#include <valgrind/callgrind.h>

#include <cstddef>
#include <string>
#include <vector>

#include "engines.h"
#include "floor.h"
#include "outputs.h"
#include "step_data.h"
#include "vllm_metrics/exposition/text_format.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics::bench {
namespace {

// `work(i)` for i = 0 .. times - 1, after a first round that warms it up.
template <class Work>
void count(const std::string& name, std::size_t times, Work&& work) {
  for (std::size_t i = 0; i < times; ++i) work(i);
  CALLGRIND_ZERO_STATS;
  for (std::size_t i = 0; i < times; ++i) work(i);
  const std::string label = name + " " + std::to_string(times);
  CALLGRIND_DUMP_STATS_AT(label.c_str());
}

void count_record(const std::string& name, const StepShape& shape) {
  const auto steps = make_steps(shape);
  const auto manager = make_manager(prometheus_only(1));
  count(name, 64, [&](std::size_t i) { record(*manager, steps[i]); });
}

void count_all() {
  count_record("record_distinct", {});
  count_record("record_equal", {.equal = true});
  count_record("record_1024", {.batch = 1024});
  count_record("record_prefill", {.batch = 64, .first_outputs = 64});

  const auto steps = make_steps({});
  Floor floor;
  count("floor_step", 64, [&](std::size_t i) {
    floor.record(steps[i].scheduler, steps[i].iteration);
  });

  Outputs outputs(256);
  count("update_from_outputs_256", 64, [&](std::size_t) { outputs.step(); });

  const auto manager = make_manager(prometheus_only(1));
  for (const Step& step : steps) record(*manager, step);
  Snapshot snapshot;
  TextFormat format;
  count("snapshot_1_engine", 16,
        [&](std::size_t) { manager->registry()->snapshot(snapshot); });
  count("scrape_1_engine", 16,
        [&](std::size_t) { format.render(*manager->registry()); });

  PrometheusCppPage page(*snapshot.schema, 1);
  count("prometheus_cpp_step", 16,
        [&](std::size_t i) { page.record(steps[i].flat); });
  count("prometheus_cpp_batched_step", 16,
        [&](std::size_t i) { page.record_batched(steps[i].flat); });
  count("prometheus_cpp_scrape", 1, [&](std::size_t) { page.text(); });
}

}  // namespace
}  // namespace vllm_metrics::bench

int main() { vllm_metrics::bench::count_all(); }
