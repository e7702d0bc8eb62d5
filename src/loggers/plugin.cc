#include "vllm_metrics/loggers/plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string_view>

namespace vllm_metrics::inline v0 {
namespace {

struct CloseLibrary {
  void operator()(void* library) const noexcept { dlclose(library); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

std::string linker_error() {
  const char* reason = dlerror();
  return reason == nullptr ? "no reason given" : reason;
}

}  // namespace

absl::StatusOr<StatLoggerFactory> factory_of(const StatLoggerPlugin* plugin,
                                             const std::string& path) {
  constexpr StatLoggerPlugin kOurs;
  if (plugin == nullptr) {
    return absl::InvalidArgumentError(
        fmt::format("{}: {}() returned null", path,
                    std::string_view(kStatLoggerPluginEntry)));
  }
  if (plugin->version != kOurs.version) {
    return absl::FailedPreconditionError(
        fmt::format("{}: compiled with vllm_metrics {}.{}; allowed: {}.{}, the "
                    "version of this program",
                    path, plugin->version / 1000, plugin->version % 1000,
                    kOurs.version / 1000, kOurs.version % 1000));
  }
  if (plugin->options_size != kOurs.options_size) {
    return absl::FailedPreconditionError(fmt::format(
        "{}: compiled with other headers of vllm_metrics {}.{}: "
        "StatLoggerOptions has {} bytes there; allowed: {}, as in this program",
        path, kOurs.version / 1000, kOurs.version % 1000, plugin->options_size,
        kOurs.options_size));
  }
  if (plugin->name == nullptr || *plugin->name == '\0') {
    return absl::InvalidArgumentError(
        fmt::format("{}: its name is empty; allowed: any other text", path));
  }
  if (plugin->factory == nullptr) {
    return absl::InvalidArgumentError(
        fmt::format("{} ({}): its factory is null", path, plugin->name));
  }
  try {
    return plugin->factory();
  } catch (const std::exception& error) {
    return absl::InternalError(
        fmt::format("{} ({}): it threw: {}", path, plugin->name, error.what()));
  } catch (...) {
    return absl::InternalError(fmt::format(
        "{} ({}): it threw what is not a std::exception", path, plugin->name));
  }
}

absl::StatusOr<StatLoggerFactory> load_plugin(const std::string& path) {
  const Library library(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (library == nullptr) {
    return absl::NotFoundError(linker_error());
  }
  void* const entry = dlsym(library.get(), kStatLoggerPluginEntry);
  if (entry == nullptr) {
    return absl::NotFoundError(
        fmt::format("{}: not a stat logger plugin of vllm_metrics: {}", path,
                    linker_error()));
  }
  auto factory =
      factory_of(reinterpret_cast<StatLoggerPluginEntry*>(entry)(), path);
  if (factory.ok())
    dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
  return factory;
}

std::vector<std::string> plugins_of_environment() {
  std::vector<std::string> paths;
  const char* const text = secure_getenv(kStatLoggerPluginsVariable);
  std::string_view rest = text == nullptr ? "" : text;
  while (!rest.empty()) {
    const std::string_view path = rest.substr(0, rest.find(':'));
    if (!path.empty()) paths.emplace_back(path);
    rest.remove_prefix(std::min(rest.size(), path.size() + 1));
  }
  return paths;
}

}  // namespace vllm_metrics::inline v0
