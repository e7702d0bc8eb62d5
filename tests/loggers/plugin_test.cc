#include "vllm_metrics/loggers/plugin.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

#include "tests/loggers/surroundings.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"

namespace vllm_metrics {
namespace {

using testing::Surroundings;
using testing::value;

std::string path_of(const std::string& name) {
  return std::string(PLUGIN_FOLDER "/") + name + "_plugin.so";
}

struct Refusal {
  std::string plugin;
  std::string message;  // behind the path
};

TEST_CASE("load_plugin: a shared object that fits gives its factory",
          "[loggers]") {
  const auto factory = load_plugin(path_of("good"));
  REQUIRE(factory.ok());
  CHECK(std::holds_alternative<AggregateStatLoggerFactory>(*factory));
}

TEST_CASE("load_plugin: one that does not fit is refused by name and reason",
          "[loggers]") {
  const auto refusal = GENERATE(
      Refusal{"other_version",
              ": compiled with vllm_metrics 0.99; allowed: 0.1, the version of "
              "this program"},
      Refusal{"other_headers",
              ": compiled with other headers of vllm_metrics 0.1: "
              "StatLoggerOptions has 8 bytes there; allowed: " +
                  std::to_string(sizeof(StatLoggerOptions)) +
                  ", as in this program"},
      Refusal{"null", ": vllm_stat_logger_plugin() returned null"},
      Refusal{"nameless", ": its name is empty; allowed: any other text"},
      Refusal{"no_factory", " (empty): its factory is null"},
      Refusal{"throws", " (rude): it threw: no broker"});
  const std::string path = path_of(refusal.plugin);
  CHECK(load_plugin(path).status().message() == path + refusal.message);
}

TEST_CASE("load_plugin: a file without the entry is not a plugin",
          "[loggers]") {
  const std::string path = path_of("no_entry");
  const std::string message(load_plugin(path).status().message());
  CHECK(message.find(path + ": not a stat logger plugin of vllm_metrics: ") ==
        0);
  CHECK(message.find("undefined symbol: vllm_stat_logger_plugin") !=
        std::string::npos);
}

TEST_CASE("load_plugin: a file that is not there, or no shared object",
          "[loggers]") {
  CHECK(load_plugin("/nowhere/x.so").status().message() ==
        "/nowhere/x.so: cannot open shared object file: No such file or "
        "directory");
  const std::string text = PLUGIN_FOLDER "/CTestTestfile.cmake";
  CHECK(load_plugin(text).status().message() == text + ": invalid ELF header");
}

TEST_CASE("StatLoggerManager: a plugin's loggers see every step", "[loggers]") {
  const Surroundings around;
  StatLoggerOptions options = around.options();
  options.plugins = {path_of("good")};
  const auto manager = StatLoggerManager::create(options);
  REQUIRE(manager.ok());
  const SchedulerStats step;
  for (int i = 0; i < 3; ++i) (*manager)->record(&step, nullptr);
  CHECK(value(around.page(), "plugin_steps_total") == "3.0");
}

TEST_CASE("StatLoggerManager: a bad plugin is told, counted and left out",
          "[loggers]") {
  const Surroundings around;
  StatLoggerOptions options = around.options();
  options.plugins = {path_of("other_version"), path_of("refuses"),
                     path_of("makes_null"),    path_of("throws_later"),
                     "/nowhere/x.so",          "/nowhere/x.so",
                     path_of("good")};
  const auto manager = StatLoggerManager::create(options);
  REQUIRE(manager.ok());
  const std::string left_out = "ERROR A stat logger plugin is left out: ";
  REQUIRE(around.log->lines.size() == 6);
  CHECK(around.log->lines[0].find(left_out + path_of("other_version") + ": ") ==
        0);
  CHECK(around.log->lines[1] ==
        left_out + path_of("refuses") + ": the broker is away");
  CHECK(around.log->lines[2] ==
        left_out + path_of("makes_null") +
            ": a stat logger factory returned a null logger");
  CHECK(around.log->lines[3] == left_out + path_of("throws_later") +
                                    ": it threw what is not a std::exception");

  const SchedulerStats step;
  (*manager)->record(&step, nullptr);
  const std::string page = around.page();
  CHECK(value(page, "plugin_steps_total") == "1.0");
  const auto errors = [&page](const std::string& logger) {
    return value(page, "vllm_metrics_logger_errors_total{logger=\"" + logger +
                           "\",model_name=\"m\"}");
  };
  CHECK(errors("/nowhere/x.so") == "2.0");
  CHECK(errors(path_of("refuses")) == "1.0");
  CHECK(errors("step_counter") == "0.0");
}

TEST_CASE("StatLoggerManager: plugins of the environment come after the others",
          "[loggers]") {
  const Surroundings around;
  StatLoggerOptions options = around.options();
  options.plugins = {"/nowhere/first.so"};
  const std::string variable = "::/nowhere/second.so:" + path_of("good") + ":";
  REQUIRE(setenv(kStatLoggerPluginsVariable, variable.c_str(), 1) == 0);
  CHECK(plugins_of_environment() ==
        std::vector<std::string>{"/nowhere/second.so", path_of("good")});
  const auto manager = StatLoggerManager::create(options);
  options.plugins_of_environment = false;
  options.registry = nullptr;
  const auto without = StatLoggerManager::create(options);
  REQUIRE(unsetenv(kStatLoggerPluginsVariable) == 0);
  REQUIRE(manager.ok());
  REQUIRE(without.ok());
  CHECK(plugins_of_environment().empty());

  REQUIRE(around.log->lines.size() == 3);
  CHECK(around.log->lines[0].find("/nowhere/first.so: ") != std::string::npos);
  CHECK(around.log->lines[1].find("/nowhere/second.so: ") != std::string::npos);
  CHECK(around.log->lines[2] == around.log->lines[0]);
  CHECK(value(around.page(), "plugin_steps_total") == "0.0");
}

}  // namespace
}  // namespace vllm_metrics
