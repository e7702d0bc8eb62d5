#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "vllm_metrics/export.h"
#include "vllm_metrics/loggers/options.h"
#include "vllm_metrics/version.h"

namespace vllm_metrics::inline v0 {

// What a shared object of stat loggers says about itself. It defines one C
// function that returns it, by this name (StatLoggerPluginEntry):
//
//   extern "C" __attribute__((visibility("default")))
//   const vllm_metrics::StatLoggerPlugin* vllm_stat_logger_plugin() {
//     static constexpr vllm_metrics::StatLoggerPlugin kPlugin{
//         .name = "acme", .factory = acme_stat_loggers};
//     return &kPlugin;
//   }
//
// An engine is told of it by path, in StatLoggerOptions::plugins or in the
// environment; one that is linked in is added by its factory, in
// StatLoggerOptions::factories. examples/10_plugin.cc is a whole
// plugin.
//
// The first two fields say which headers it was compiled with. They stay first
// in all versions; the rest is looked at only when they are right: the same
// major and minor version, and options of the same size, which unreleased
// headers change without a new version.
struct StatLoggerPlugin {
  std::uint32_t version =
      VLLM_METRICS_VERSION_MAJOR * 1000 + VLLM_METRICS_VERSION_MINOR;
  std::uint32_t options_size = sizeof(StatLoggerOptions);

  // For messages, e.g. "kafka". Static storage.
  const char* name = nullptr;

  // Called once for each manager that loads the plugin, from create(). May
  // throw; what the factory makes is contained as every stat logger is.
  StatLoggerFactory (*factory)() = nullptr;
};

using StatLoggerPluginEntry = const StatLoggerPlugin*();

inline constexpr char kStatLoggerPluginEntry[] = "vllm_stat_logger_plugin";

// The environment variable that names plugins, paths with `:` between them.
inline constexpr char kStatLoggerPluginsVariable[] = "VLLM_METRICS_PLUGINS";

// The factory of `plugin`, which its `path` is named with in messages.
// Errors: FailedPrecondition for another version, InvalidArgument for a null
// plugin, name or factory.
[[nodiscard]] VLLM_METRICS_EXPORT absl::StatusOr<StatLoggerFactory> factory_of(
    const StatLoggerPlugin* plugin, const std::string& path);

// Loads the shared object `path` and returns the factory it offers. A path
// without a slash is searched for as the dynamic linker does. What was accepted
// stays loaded until the process ends: its loggers may have threads.
//
// Any thread. Runs the static constructors of the shared object.
// Errors: those of factory_of(), NotFound with the dynamic linker's reason when
// it cannot be loaded or has no entry; each names `path`.
[[nodiscard]] VLLM_METRICS_EXPORT absl::StatusOr<StatLoggerFactory> load_plugin(
    const std::string& path);

// The paths in kStatLoggerPluginsVariable, in order; none in a program that
// runs with more rights than its user.
[[nodiscard]] VLLM_METRICS_EXPORT std::vector<std::string>
plugins_of_environment();

}  // namespace vllm_metrics::inline v0
