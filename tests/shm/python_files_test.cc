#include "vllm_metrics/shm/python_files.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "tests/shm/recorders.h"
#include "tests/shm/shared_folder.h"

namespace {

using namespace vllm_metrics;  // NOLINT

// A page with every kind of series, and names that JSON has to escape.
class Page {
 public:
  Page() {
    const IterationStats step = a_step();
    SchedulerStats scheduler;
    scheduler.num_running_reqs = 3;
    scheduler.kv_cache_usage = 0.25;
    for (int i = 0; i < 3; ++i) manager_->record(&scheduler, &step);
    info_ = registry()->add_gauge(
        {.name = "hostile", .help = "A \"quote\", a \\ and a\nline."},
        {{"a", "x\"y\\z\n\xC3\xA9"}});
    (*info_)->set(1.5);
  }
  const std::shared_ptr<Registry>& registry() const {
    return manager_->registry();
  }

 private:
  std::unique_ptr<StatLoggerManager> manager_ = manager_of(options_on(nullptr));
  absl::StatusOr<Handle<Gauge>> info_ = absl::UnknownError("");
};

// The sum over all processes of a counter of an engine; entries with times.
double sum_of(const SharedFolder& folder, const std::string& name) {
  double sum = 0.0;
  for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
    if (!file.path().filename().string().starts_with("counter_")) continue;
    const std::string text = file_text(file.path().string());
    std::int32_t used = 0;
    std::memcpy(&used, text.data(), sizeof used);
    for (std::size_t at = 8; at < static_cast<std::size_t>(used);) {
      std::int32_t size = 0;
      std::memcpy(&size, text.data() + at, sizeof size);
      const auto key = text.substr(at + 4, static_cast<std::size_t>(size));
      at += 4 + key.size();
      at += 8 - at % 8;
      double value = 0.0;
      std::memcpy(&value, text.data() + at, sizeof value);
      if (key.find('"' + name + '"') != std::string::npos) sum += value;
      at += 2 * sizeof value;
    }
  }
  return sum;
}

// What the script says of the folder beside a page: 0 for equal.
int compare(const SharedFolder& folder, const std::string& page,
            const char* format) {
  const std::string command = "/usr/bin/python3 " VLLM_METRICS_TEST_DATA
                              "/shm/compare_python_files.py " +
                              folder.path() + " " + page + " " + format;
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int compare(const SharedFolder& folder, const Registry& registry,
            const char* format) {
  const std::string page = folder.path() + "/page.prom";
  std::ofstream(page) << page_of(registry);
  return compare(folder, page, format);
}

}  // namespace

TEST_CASE("PythonFiles: client_python's collector reads our page from them",
          "[shm]") {
  const SharedFolder folder;
  const Page page;
  const auto files = shm::PythonFiles::create(
      {.folder = folder.path(), .has_timestamps = false});
  REQUIRE(files.ok());
  for (int i = 0; i < 2; ++i)
    REQUIRE((*files)->write(*page.registry(), 1000.0 + i).ok());
  CHECK(compare(folder, *page.registry(), "client") == 0);
}

TEST_CASE("PythonFiles: entries have a time since client_python 0.17",
          "[shm]") {
  const SharedFolder folder;
  const Page page;
  const auto files = shm::PythonFiles::create({.folder = folder.path()});
  REQUIRE(files.ok());
  REQUIRE((*files)->write(*page.registry(), 1000.0).ok());
  CHECK(compare(folder, *page.registry(), "timestamps") == 0);
}

TEST_CASE(
    "PythonFiles: the collector reads a running engine that was told to write "
    "them, and what it was at its end",
    "[shm]") {
  const SharedFolder folder;
  int to_test[2];
  int to_engine[2];
  REQUIRE(::pipe(to_test) == 0);
  REQUIRE(::pipe(to_engine) == 0);
  const std::string expected = folder.path() + "/page.prom";
  const pid_t engine = ::fork();
  if (engine == 0) {
    auto options = options_on(nullptr, 1000.0);
    options.factories.push_back(shm::python_files_logger(
        {.folder = folder.path(), .has_timestamps = false}));
    auto manager = manager_of(std::move(options));
    int steps = 0;
    const auto step_and_page = [&] {
      const IterationStats step = a_step();
      SchedulerStats scheduler;
      scheduler.num_running_reqs = ++steps;
      for (int i = 0; i < steps; ++i) manager->record(&scheduler, &step);
      std::ofstream(expected) << page_of(*manager->registry());
    };
    const auto tell_and_wait = [&] {
      char byte = 0;
      if (::write(to_test[1], "", 1) != 1 ||
          ::read(to_engine[0], &byte, 1) != 1)
        ::_exit(1);
    };
    manager->log_engine_initialized();
    for (int log = 0; log < 2; ++log) {
      step_and_page();
      manager->log();
      tell_and_wait();
    }
    step_and_page();
    manager.reset();
    ::_exit(0);
  }
  char byte = 0;
  for (int log = 0; log < 2; ++log) {
    REQUIRE(::read(to_test[0], &byte, 1) == 1);
    CHECK(compare(folder, expected, "client") == 0);
    REQUIRE(::write(to_engine[1], "", 1) == 1);
  }
  int status = 0;
  ::waitpid(engine, &status, 0);
  REQUIRE(status == 0);
  CHECK(compare(folder, expected, "client") == 0);
  for (const int end : {to_test[0], to_test[1], to_engine[0], to_engine[1]})
    ::close(end);
}

TEST_CASE(
    "PythonFiles: a forked child counts nothing twice, and with its own "
    "manager "
    "once",
    "[shm]") {
  const SharedFolder folder;
  const auto files_logger = shm::python_files_logger({.folder = folder.path()});
  const auto engine = [&] {
    auto options = options_on(nullptr, 1000.0);
    options.factories.push_back(files_logger);
    return manager_of(std::move(options));
  };
  const IterationStats step = a_step();
  auto manager = engine();
  for (int i = 0; i < 3; ++i) manager->record(nullptr, &step);
  manager->log();
  const auto steps = [&] {
    return sum_of(folder, "vllm:prompt_tokens_total") / kPromptTokens;
  };
  REQUIRE(steps() == 3.0);
  CHECK(in_child([&] {
          manager->record(nullptr, &step);
          manager->log();
          manager.reset();
        }) == 0);
  CHECK(steps() == 3.0);
  CHECK(in_child([&] {
          const auto own = engine();
          for (int i = 0; i < 2; ++i) own->record(nullptr, &step);
          own->log();
          manager.reset();
        }) == 0);
  CHECK(steps() == 5.0);
  manager->record(nullptr, &step);
  manager.reset();
  CHECK(steps() == 6.0);
}

TEST_CASE("PythonFiles: an engine whose files cannot be written goes on",
          "[shm]") {
  auto folder = std::make_optional<SharedFolder>();
  auto options = options_on(nullptr);
  options.factories.push_back(
      shm::python_files_logger({.folder = folder->path()}));
  const auto manager = manager_of(std::move(options));
  folder.reset();
  const IterationStats step = a_step();
  for (int i = 0; i < 3; ++i) {
    manager->record(nullptr, &step);
    manager->log();
  }
  const std::string page = page_of(*manager->registry());
  CHECK(sample(page, of_engine("vllm:prompt_tokens_total")) ==
        3 * kPromptTokens);
  CHECK(sample(page,
               R"(vllm_metrics_logger_errors_total{logger="python_files",)"
               R"(model_name="m"})") == 3.0);
}

TEST_CASE("PythonFiles: an engine is told of a folder that is not there",
          "[shm]") {
  auto options = options_on(nullptr);
  options.factories.push_back(
      shm::python_files_logger({.folder = "/no/such/folder"}));
  const auto made = StatLoggerManager::create(std::move(options));
  CHECK(made.status().message() ==
        "folder /no/such/folder: No such file or directory");
}

TEST_CASE("PythonFiles: a folder that is not there is named", "[shm]") {
  const auto made = shm::PythonFiles::create({.folder = "/no/such/folder"});
  CHECK(made.status().message() ==
        "folder /no/such/folder: No such file or directory");
}
