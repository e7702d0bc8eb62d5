// Does each piece of work under callgrind, which counts its instructions:
// bench/count_instructions.py runs this program and compares the counts with
// bench/instruction_budget.txt.

#include <valgrind/callgrind.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engines.h"
#include "floor.h"
#include "outputs.h"
#include "step_data.h"
#include "vllm_metrics/exposition/text_format.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"
#ifdef VLLM_METRICS_HAS_OTLP
#include "vllm_metrics/otlp/span_exporter.h"
#endif
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

#ifdef VLLM_METRICS_HAS_OTLP
// A decode step in which 2 requests end. The exporter never gets to run, so a
// queue of one is full after the first.
void count_spans(const std::string& name, double ratio, std::size_t queue) {
  otlp::Options push;
  push.environment = [](const char*) -> const char* { return nullptr; };
  push.span_delay = 86'400.0;
  push.root_ratio = ratio;
  push.span_queue = queue;
  StatLoggerOptions options = prometheus_only(1);
  options.registry = Registry::create();
  const auto spans = otlp::SpanExporter::start(options.registry, push);
  if (!spans.ok()) std::abort();
  options.factories = {(*spans)->factory()};
  const auto manager = make_manager(std::move(options));
  const auto steps = make_steps({});
  count(name, 64, [&](std::size_t i) { record(*manager, steps[i]); });
  (*spans)->shutdown(0.0);
}
#else
void count_spans(const std::string&, double, std::size_t) {}
#endif

void count_all() {
  count_record("record_distinct", {});
  count_record("record_equal", {.equal = true});
  count_record("record_1024", {.batch = 1024});
  count_record("record_prefill", {.batch = 64, .first_outputs = 64});

  count_spans("record_spans_1_percent", 0.01, 2048);
  count_spans("record_spans_queue_full", 1.0, 1);

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
