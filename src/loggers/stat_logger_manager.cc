#include "vllm_metrics/loggers/stat_logger_manager.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "src/loggers/contained_logger.h"
#include "src/loggers/engine_index_map.h"
#include "src/loggers/options_check.h"
#include "src/loggers/unexpected_engines.h"
#include "src/registry/mutex.h"
#include "vllm_metrics/catalogue/catalogue.h"
#include "vllm_metrics/loggers/logging_stat_logger.h"
#include "vllm_metrics/loggers/per_engine_adapter.h"
#include "vllm_metrics/loggers/plugin.h"
#include "vllm_metrics/loggers/prometheus_stat_logger.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics::inline v0 {
namespace {

constexpr std::string_view kSeveralClients =
    "AsyncLLM created with api_server_count more than 1; disabling stats "
    "logging to avoid incomplete stats.";

absl::StatusOr<std::unique_ptr<StatLoggerBase>> make_prometheus(
    const StatLoggerOptions& options) {
  return PrometheusStatLogger::create(options);
}

absl::StatusOr<std::unique_ptr<StatLoggerBase>> make_logging(
    const StatLoggerOptions& options, int engine_index) {
  return std::make_unique<LoggingStatLogger>(options, engine_index);
}

absl::StatusOr<std::unique_ptr<StatLoggerBase>> make_aggregated_logging(
    const StatLoggerOptions& options) {
  return std::make_unique<AggregatedLoggingStatLogger>(options);
}

// The default text logger, or why there is none.
std::vector<StatLoggerFactory> default_text_logger(
    const StatLoggerOptions& options) {
  if (!options.default_loggers ||
      options.log_sink->minimum_level() > LogLevel::kInfo)
    return {};
  if (options.client_count > 1) {
    options.log_sink->write(LogLevel::kWarning, options.clock->wall(),
                            LogSink::kNoEngine, kSeveralClients);
    return {};
  }
  if (options.aggregate_engine_logging)
    return {AggregateStatLoggerFactory(make_aggregated_logging)};
  return {PerEngineStatLoggerFactory(make_logging)};
}

}  // namespace

struct StatLoggerManager::State {
  explicit State(StatLoggerOptions given)
      : options(std::move(given)),
        places(options.engine_indexes),
        unexpected(options),
        engine_locks(options.engine_indexes.size()) {}

  // In the order in which they are called: custom ones while vLLM's families
  // are still on the page.
  ~State() {
    for (ContainedLogger& logger : loggers) logger.logger.reset();
  }

  absl::Status build();
  absl::Status add(const StatLoggerFactory& factory);
  void add_plugin(const std::string& path);
  absl::StatusOr<ContainedLogger> make(
      const PerEngineStatLoggerFactory& factory);
  absl::StatusOr<ContainedLogger> make(
      const AggregateStatLoggerFactory& factory);
  absl::Status add_self_metrics();
  absl::Status add_sampled_transfers();
  std::shared_ptr<LoggerErrors> errors_of(std::string_view logger_name);
  absl::StatusOr<Handle<Counter>> self_counter(
      MetricId id, std::string_view extra_value = {});
  void count_undeclared(int engine_index) noexcept;
  template <class Call>
  void call_all(Call call) noexcept {
    for (ContainedLogger& logger : loggers) logger.call(call);
  }

  // A cache line each, so that two engines' steps do not share one.
  struct alignas(64) EngineLock {
    Mutex mutex;
  };

  const StatLoggerOptions options;
  const EngineIndexMap places;
  UnexpectedEngines unexpected;
  std::optional<Handle<Counter>> undeclared;
  Registration sampled_transfers;
  std::map<std::string, std::shared_ptr<LoggerErrors>, std::less<>>
      errors;  // by logger name
  std::vector<ContainedLogger> loggers;
  std::vector<EngineLock> engine_locks;  // in the order of the engine indexes
  Mutex log_mutex;                       // one log() at a time
};

absl::Status StatLoggerManager::State::build() {
  if (!options.log_stats) return absl::OkStatus();
  for (const StatLoggerFactory& factory : options.factories) {
    if (auto status = add(factory); !status.ok()) return status;
  }
  for (const std::string& path : options.plugins) add_plugin(path);
  if (options.plugins_of_environment) {
    for (const std::string& path : plugins_of_environment()) add_plugin(path);
  }
  for (const StatLoggerFactory& factory : default_text_logger(options)) {
    if (auto status = add(factory); !status.ok()) return status;
  }
  const auto exposes = [](const ContainedLogger& made) {
    return made.logger->exposes_catalogue();
  };
  if (!std::ranges::any_of(loggers, exposes)) {
    if (auto status = add(AggregateStatLoggerFactory(make_prometheus));
        !status.ok())
      return status;
  }
  return add_self_metrics();
}

// After the loggers, so that a clash is reported by the families of vLLM.
absl::Status StatLoggerManager::State::add_self_metrics() {
  if (!options.self_metrics) return absl::OkStatus();
  auto counter = self_counter(MetricId::kUndeclaredEngineRecords);
  if (!counter.ok()) return counter.status();
  undeclared = *std::move(counter);
  if (auto status = add_sampled_transfers(); !status.ok()) return status;
  for (const auto& [name, of_logger] : errors) {
    auto counted = self_counter(MetricId::kLoggerErrors, name);
    if (!counted.ok()) return counted.status();
    of_logger->count_in(*std::move(counted));
  }
  return absl::OkStatus();
}

absl::Status StatLoggerManager::State::add(const StatLoggerFactory& factory) {
  auto made = std::visit(
      [this](const auto& of_either_kind) { return make(of_either_kind); },
      factory);
  if (!made.ok()) return made.status();
  loggers.push_back(*std::move(made));
  return absl::OkStatus();
}

// A plugin is the operator's choice, not the engine's: a bad one is no reason
// to serve nobody.
void StatLoggerManager::State::add_plugin(const std::string& path) {
  std::string reason;
  try {
    auto factory = load_plugin(path);
    const absl::Status status = factory.ok() ? add(*factory) : factory.status();
    if (status.ok()) return;
    reason = std::string(status.message());
    if (factory.ok()) reason = path + ": " + reason;
  } catch (const std::exception& error) {
    reason = path + ": it threw: " + error.what();
  } catch (...) {
    reason = path + ": it threw what is not a std::exception";
  }
  errors_of(path)->count();
  options.log_sink->write(LogLevel::kError, options.clock->wall(),
                          LogSink::kNoEngine,
                          "A stat logger plugin is left out: " + reason);
}

absl::StatusOr<ContainedLogger> StatLoggerManager::State::make(
    const AggregateStatLoggerFactory& factory) {
  auto logger = factory(options);
  if (!logger.ok()) return logger.status();
  if (*logger == nullptr)
    return absl::InvalidArgumentError(
        "a stat logger factory returned a null logger");
  auto sink = errors_of((*logger)->name());
  return ContainedLogger{*std::move(logger), std::move(sink)};
}

absl::StatusOr<ContainedLogger> StatLoggerManager::State::make(
    const PerEngineStatLoggerFactory& factory) {
  // The name, by which errors are counted, is known only once the loggers are.
  const auto sink = std::make_shared<std::shared_ptr<LoggerErrors>>();
  auto adapter = PerEngineStatLoggerAdapter::create(
      options, factory,
      [sink](std::string_view what) { (*sink)->report(what); });
  if (!adapter.ok()) return adapter.status();
  *sink = errors_of((*adapter)->name());
  return ContainedLogger{*std::move(adapter), *sink};
}

absl::Status StatLoggerManager::State::add_sampled_transfers() {
  if (options.kv_connector == nullptr) return absl::OkStatus();
  class Source final : public SnapshotSource {
   public:
    explicit Source(std::shared_ptr<const KvConnectorMetrics> connector)
        : connector_(std::move(connector)) {}
    void read(std::span<std::uint64_t> words) const noexcept override {
      words[0] = connector_->sampled();
    }

   private:
    std::shared_ptr<const KvConnectorMetrics> connector_;
  };
  Series series{.labels = {{"model_name", options.model_name}}};
  std::vector<SchemaFamily> families{
      {family_of(spec_of(MetricId::kSampledKvTransfers)), {series}}};
  auto added = options.registry->add(
      std::move(families), std::make_shared<Source>(options.kv_connector), 1);
  if (!added.ok()) return added.status();
  sampled_transfers = *std::move(added);
  return absl::OkStatus();
}

std::shared_ptr<LoggerErrors> StatLoggerManager::State::errors_of(
    std::string_view logger_name) {
  auto& known = errors[std::string(logger_name)];
  if (known == nullptr)
    known = std::make_shared<LoggerErrors>(std::string(logger_name), options);
  return known;
}

absl::StatusOr<Handle<Counter>> StatLoggerManager::State::self_counter(
    MetricId id, std::string_view extra_value) {
  const MetricSpec& spec = spec_of(id);
  Labels labels{{"model_name", options.model_name}};
  if (!spec.extra_label.name.empty())
    labels.push_back(
        {std::string(spec.extra_label.name), std::string(extra_value)});
  return options.registry->add_counter(family_of(spec), std::move(labels));
}

void StatLoggerManager::State::count_undeclared(int engine_index) noexcept {
  if (undeclared.has_value()) (*undeclared)->inc();
  try {
    unexpected.report(engine_index);
  } catch (...) {
    // The sink is broken or memory is out; the count on the page is what is
    // left.
  }
}

absl::StatusOr<std::unique_ptr<StatLoggerManager>> StatLoggerManager::create(
    StatLoggerOptions given) {
  auto options = checked(std::move(given));
  if (!options.ok()) return options.status();
  if (options->registry == nullptr) options->registry = Registry::create();
  auto state = std::make_unique<State>(*std::move(options));
  try {
    if (auto status = state->build(); !status.ok()) return status;
  } catch (const std::exception& error) {
    return absl::InternalError(std::string("a stat logger factory threw: ") +
                               error.what());
  } catch (...) {
    return absl::InternalError(
        "a stat logger factory threw an exception that is not a "
        "std::exception");
  }
  return std::unique_ptr<StatLoggerManager>(
      new StatLoggerManager(std::move(state)));
}

StatLoggerManager::StatLoggerManager(std::unique_ptr<State> state) noexcept
    : state_(std::move(state)) {}
StatLoggerManager::~StatLoggerManager() = default;

void StatLoggerManager::record(const SchedulerStats* scheduler,
                               const IterationStats* iteration,
                               const MultiModalCacheStats* mm_cache,
                               int engine_index) noexcept {
  if (state_->loggers.empty()) return;
  const auto place = state_->places.find(engine_index);
  if (!place.has_value()) return state_->count_undeclared(engine_index);
  const StepRecord step{engine_index, scheduler, iteration, mm_cache};
  const MutexLock lock(state_->engine_locks[*place].mutex);
  state_->call_all([&step](StatLoggerBase& logger) { logger.record(step); });
}

void StatLoggerManager::log() noexcept {
  const MutexLock lock(state_->log_mutex);
  state_->call_all([](StatLoggerBase& logger) { logger.log(); });
}

void StatLoggerManager::log_engine_initialized() noexcept {
  const MutexLock lock(state_->log_mutex);
  state_->call_all(
      [](StatLoggerBase& logger) { logger.log_engine_initialized(); });
}

// The loggers write the state of every engine, so no step may run meanwhile.
// Taken in one order by all; record() takes one only.
void StatLoggerManager::record_sleep_state(const SleepState& sleep) noexcept
    ABSL_NO_THREAD_SAFETY_ANALYSIS {
  for (State::EngineLock& engine : state_->engine_locks) engine.mutex.lock();
  state_->call_all(
      [&sleep](StatLoggerBase& logger) { logger.record_sleep_state(sleep); });
  for (State::EngineLock& engine : state_->engine_locks) engine.mutex.unlock();
}

void StatLoggerManager::record_admission_rejection(
    AdmissionLimit limit) noexcept {
  state_->call_all([limit](StatLoggerBase& logger) {
    logger.record_admission_rejection(limit);
  });
}

void StatLoggerManager::record_operation(EngineOperation operation,
                                         double seconds) noexcept {
  state_->call_all([operation, seconds](StatLoggerBase& logger) {
    logger.record_operation(operation, seconds);
  });
}

const std::shared_ptr<Registry>& StatLoggerManager::registry() const noexcept {
  return state_->options.registry;
}

}  // namespace vllm_metrics::inline v0
