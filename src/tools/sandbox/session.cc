#include "src/tools/sandbox/session.h"

#include <fmt/format.h>

#include <utility>

namespace vllm_metrics::sandbox {
namespace {

absl::Status not_allowed(std::string_view field, const Json& value,
                         std::string_view allowed) {
  constexpr std::size_t kShown = 60;
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kShown) text = text.substr(0, kShown) + "...";
  return absl::InvalidArgumentError(
      fmt::format("{} = {}; allowed: {}", field, text, allowed));
}

sim::Ticks change_of(std::string_view name) {
  const sim::Scenario* const scenario = sim::find_scenario(name);
  return scenario == nullptr ? sim::kNever : scenario->change_at;
}

std::string text_of(const absl::Status& status) {
  return std::string(status.message());
}

}  // namespace

// The session changes what a scenario changes on its way, so that it shows.
Session::Session(const sim::SimOptions& options) : options_(options) {
  settings_ = {.parameters = with_blocks_from_memory(options.parameters),
               .speed = options.speed,
               .seed = options.seed,
               .scenario = options.scenario};
  options_.scenario.clear();
  options_.parameters = settings_.parameters;
  next_change_ = change_of(settings_.scenario);
}

sim::SimOptions Session::first_options() const {
  const std::lock_guard lock(mutex_);
  return options_;
}

absl::Status Session::order(const Json& wanted) {
  const std::lock_guard lock(mutex_);
  Settings settings = settings_;
  bool reset = reset_;
  if (absl::Status status = read(wanted, settings, reset); !status.ok()) {
    return status;
  }
  settings_ = std::move(settings);
  reset_ = reset;
  message_.clear();
  ++revision_;
  pending_.store(true, std::memory_order_release);
  return absl::OkStatus();
}

absl::Status Session::read(const Json& wanted, Settings& settings,
                           bool& reset) const {
  if (!wanted.is_object()) return not_allowed("body", wanted, "an object");
  // A scenario is where parameters beside it begin.
  if (const auto found = wanted.find("scenario"); found != wanted.end()) {
    const std::string name =
        found->is_string() ? found->get<std::string>() : "";
    const sim::Scenario* const scenario = sim::find_scenario(name);
    if (scenario == nullptr) {
      return not_allowed("scenario", *found, sim::scenario_names());
    }
    settings.scenario = name;
    settings.parameters = with_blocks_from_memory(scenario->parameters());
    settings.paused = false;
    reset = true;
  }
  for (const auto& [field, value] : wanted.items()) {
    if (field == "scenario") continue;
    if (field == "parameters") {
      if (!value.is_object()) return not_allowed(field, value, "an object");
      absl::Status status = set_values(value, settings.parameters);
      if (status.ok()) status = sim::validate(settings.parameters);
      if (!status.ok()) return status;
    } else if (field == "speed") {
      const double speed = value.is_number() ? value.get<double>() : 0.0;
      if (!(speed >= kMinSpeed && speed <= kMaxSpeed)) {
        return not_allowed(field, value, "a number from 0.1 to 100");
      }
      settings.speed = speed;
    } else if (field == "paused" || field == "reset") {
      if (!value.is_boolean()) {
        return not_allowed(field, value, "true or false");
      }
      if (field == "paused") settings.paused = value.get<bool>();
      if (field == "reset") reset |= value.get<bool>();
    } else if (field == "seed") {
      if (!value.is_number_unsigned() ||
          value.get<std::uint64_t>() > kMaxSeed) {
        return not_allowed(field, value,
                           "a whole number from 0 to 9007199254740992");
      }
      settings.seed = value.get<std::uint64_t>();
      reset = true;
    } else {
      return not_allowed("field", Json(field),
                         "parameters, speed, paused, seed, scenario, reset");
    }
  }
  return absl::OkStatus();
}

Json Session::state() const {
  const std::lock_guard lock(mutex_);
  return {{"revision", revision_},
          {"applied", applied_},
          {"message", message_},
          {"scenario", settings_.scenario},
          {"seed", settings_.seed},
          {"speed", settings_.speed},
          {"paused", settings_.paused},
          {"parameters", values_json(settings_.parameters)}};
}

std::uint64_t Session::revision() const {
  const std::lock_guard lock(mutex_);
  return revision_;
}

bool Session::visit(sim::Run& run) {
  const bool watched = keep_watch(run);
  if (!pending_.load(std::memory_order_acquire)) return watched;
  const std::lock_guard lock(mutex_);
  pending_.store(false, std::memory_order_relaxed);
  const absl::Status status = carry_out(run);
  if (!status.ok()) message_ = text_of(status);
  applied_ = revision_;
  return true;
}

absl::Status Session::carry_out(sim::Run& run) {
  absl::Status status;
  if (reset_) {
    reset_ = false;
    sim::SimOptions options = options_;
    options.parameters = settings_.parameters;
    options.seed = settings_.seed;
    status = run.restart(options);
    // What was allowed can still not be had, for want of memory, say.
    if (!status.ok() && run.restart(options_).ok()) {
      settings_.parameters = options_.parameters;
    }
    next_change_ = change_of(settings_.scenario);
  } else if (run.simulation().parameters() != settings_.parameters) {
    status = run.simulation().apply(settings_.parameters);
  }
  run.time().set_speed(settings_.paused ? 0.0 : settings_.speed,
                       run.simulation().now());
  return status;
}

// What happens by itself: the change of a scenario, and too long a queue.
bool Session::keep_watch(sim::Run& run) {
  const sim::Simulation& simulation = run.simulation();
  const bool change = simulation.now() >= next_change_;
  const bool full =
      simulation.num_waiting() > kMaxWaiting && run.time().speed() > 0.0;
  if (!change && !full) return false;
  const std::lock_guard lock(mutex_);
  if (change) {
    next_change_ = sim::kNever;
    sim::find_scenario(settings_.scenario)->change(settings_.parameters);
  }
  if (full) {
    settings_.paused = true;
    message_ = fmt::format(
        "Paused: {} requests wait, more than the sandbox keeps. Lower the load "
        "and reset.",
        simulation.num_waiting());
  }
  ++revision_;
  pending_.store(true, std::memory_order_release);
  return true;
}

}  // namespace vllm_metrics::sandbox
