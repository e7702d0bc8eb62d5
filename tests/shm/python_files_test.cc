#include "vllm_metrics/shm/python_files.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

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

// What the script says of the folder beside our page: 0 for equal.
int compare(const SharedFolder& folder, const Registry& registry,
            const char* format) {
  const std::string page = folder.path() + "/page.prom";
  std::ofstream(page) << page_of(registry);
  const std::string command = "/usr/bin/python3 " VLLM_METRICS_TEST_DATA
                              "/shm/compare_python_files.py " +
                              folder.path() + " " + page + " " + format;
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
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

TEST_CASE("PythonFiles: a folder that is not there is named", "[shm]") {
  const auto made = shm::PythonFiles::create({.folder = "/no/such/folder"});
  CHECK(made.status().message() ==
        "folder /no/such/folder: No such file or directory");
}
