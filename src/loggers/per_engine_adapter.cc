#include "vllm_metrics/loggers/per_engine_adapter.h"

#include <fmt/format.h>

#include <exception>
#include <utility>
#include <vector>

#include "src/loggers/engine_index_map.h"
#include "src/loggers/options_check.h"
#include "src/loggers/unexpected_engines.h"

namespace vllm_metrics::inline v0 {

struct PerEngineStatLoggerAdapter::State {
  explicit State(const StatLoggerOptions& options)
      : places(options.engine_indexes), unexpected(options) {}

  template <class Call>
  void contained(StatLoggerBase& logger, Call call) {
    if (on_error == nullptr) return call(logger);
    try {
      call(logger);
    } catch (const std::exception& error) {
      on_error(error.what());
    } catch (...) {
      on_error("an exception that is not a std::exception");
    }
  }

  EngineIndexMap places;
  UnexpectedEngines unexpected;
  ErrorHandler on_error;
  std::vector<std::unique_ptr<StatLoggerBase>>
      loggers;  // in the order of the engine indexes
};

PerEngineStatLoggerAdapter::PerEngineStatLoggerAdapter(
    std::unique_ptr<State> state) noexcept
    : state_(std::move(state)) {}
PerEngineStatLoggerAdapter::~PerEngineStatLoggerAdapter() = default;

absl::StatusOr<std::unique_ptr<PerEngineStatLoggerAdapter>>
PerEngineStatLoggerAdapter::create(const StatLoggerOptions& given,
                                   const PerEngineStatLoggerFactory& factory,
                                   ErrorHandler on_error) {
  const StatLoggerOptions options = with_defaults(given);
  auto state = std::make_unique<State>(options);
  state->on_error = std::move(on_error);
  for (const int engine_index : options.engine_indexes) {
    auto logger = factory(options, engine_index);
    if (logger.ok() && *logger == nullptr)
      logger = absl::InvalidArgumentError("the factory returned a null logger");
    if (!logger.ok()) {
      return absl::Status(
          logger.status().code(),
          fmt::format("stat logger of engine {}: {}", engine_index,
                      std::string(logger.status().message())));
    }
    state->loggers.push_back(*std::move(logger));
  }
  return std::unique_ptr<PerEngineStatLoggerAdapter>(
      new PerEngineStatLoggerAdapter(std::move(state)));
}

std::string_view PerEngineStatLoggerAdapter::name() const {
  return state_->loggers.front()->name();
}

void PerEngineStatLoggerAdapter::record(const StepRecord& step) {
  const auto place = state_->places.find(step.engine_index);
  if (!place.has_value()) return state_->unexpected.report(step.engine_index);
  state_->contained(*state_->loggers[*place],
                    [&](StatLoggerBase& logger) { logger.record(step); });
}

void PerEngineStatLoggerAdapter::log() {
  for (const auto& logger : state_->loggers)
    state_->contained(*logger, [](StatLoggerBase& l) { l.log(); });
}

void PerEngineStatLoggerAdapter::log_engine_initialized() {
  for (const auto& logger : state_->loggers) {
    state_->contained(*logger,
                      [](StatLoggerBase& l) { l.log_engine_initialized(); });
  }
}

}  // namespace vllm_metrics::inline v0
