// The shared objects of plugin_test.cc, one of them each time it is compiled:
// PLUGIN says which.

#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "vllm_metrics/loggers/plugin.h"
#include "vllm_metrics/registry/registry.h"

namespace {

using namespace vllm_metrics;

// Shows that it was called: one token of its own for each step.
class StepCounter final : public StatLoggerBase {
 public:
  explicit StepCounter(Handle<Counter> steps) : steps_(std::move(steps)) {}
  std::string_view name() const override { return "step_counter"; }
  void record(const StepRecord&) override { steps_->inc(); }

 private:
  Handle<Counter> steps_;
};

absl::StatusOr<std::unique_ptr<StatLoggerBase>> make_step_counter(
    const StatLoggerOptions& options) {
  auto steps = options.registry->add_counter(
      {.name = "plugin_steps", .help = "Steps the plugin saw."});
  if (!steps.ok()) return steps.status();
  return std::make_unique<StepCounter>(*steps);
}

[[maybe_unused]] StatLoggerFactory good() {
  return AggregateStatLoggerFactory(make_step_counter);
}
[[maybe_unused]] StatLoggerFactory throws() {
  throw std::runtime_error("no broker");
}
[[maybe_unused]] StatLoggerFactory refuses() {
  return AggregateStatLoggerFactory(
      [](const StatLoggerOptions&)
          -> absl::StatusOr<std::unique_ptr<StatLoggerBase>> {
        return absl::UnavailableError("the broker is away");
      });
}
[[maybe_unused]] StatLoggerFactory makes_null() {
  return AggregateStatLoggerFactory([](const StatLoggerOptions&) {
    return absl::StatusOr<std::unique_ptr<StatLoggerBase>>(nullptr);
  });
}
[[maybe_unused]] StatLoggerFactory throws_later() {
  return AggregateStatLoggerFactory(
      [](const StatLoggerOptions&)
          -> absl::StatusOr<std::unique_ptr<StatLoggerBase>> { throw 7; });
}

constexpr StatLoggerPlugin kPlugin = PLUGIN;

}  // namespace

#ifndef NO_ENTRY
extern "C" __attribute__((visibility("default"))) const StatLoggerPlugin*
vllm_stat_logger_plugin() {
  return kPlugin.options_size == 0 ? nullptr : &kPlugin;
}
#endif
