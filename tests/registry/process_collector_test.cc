#include "vllm_metrics/registry/process_collector.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "vllm_metrics/registry/registry.h"

using Catch::Matchers::Contains;
using vllm_metrics::add_process_metrics;
using vllm_metrics::Registry;
using vllm_metrics::Snapshot;

namespace {

double value_of(const Registry& registry, const std::string& name) {
  Snapshot snapshot;
  registry.snapshot(snapshot);
  for (const auto& [family, series] : snapshot.schema->families) {
    if (family.name == name) return snapshot.real(series.at(0));
  }
  FAIL(name << " is not on the page");
  return 0.0;
}

// Changes the soft limit on file descriptors for as long as it lives.
class FdLimit {
 public:
  explicit FdLimit(rlim_t soft) {
    REQUIRE(getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const rlimit now{.rlim_cur = soft, .rlim_max = before_.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &now) == 0);
  }
  ~FdLimit() { setrlimit(RLIMIT_NOFILE, &before_); }
  FdLimit(const FdLimit&) = delete;
  FdLimit& operator=(const FdLimit&) = delete;

 private:
  rlimit before_{};
};

// The same facts by another way: lines of /proc/self/status, in kB.
double status_bytes(const std::string& key) {
  std::ifstream file("/proc/self/status");
  double kilobytes = 0.0;
  for (std::string word; file >> word;) {
    if (word == key && file >> kilobytes) return kilobytes * 1024.0;
  }
  return 0.0;
}

}  // namespace

TEST_CASE("process metrics: the families, in the order of the page",
          "[registry]") {
  const auto registry = Registry::create();
  const auto process = add_process_metrics(*registry);
  REQUIRE(process.ok());
  Snapshot snapshot;
  registry->snapshot(snapshot);
  std::vector<std::string> names;
  for (const auto& [family, series] : snapshot.schema->families) {
    names.push_back(family.name + " " + std::string(name_of(family.kind)));
    CHECK(series.size() == 1);
    CHECK(series[0].labels.empty());
    CHECK_FALSE(family.help.empty());
  }
  CHECK(names == std::vector<std::string>{"process_virtual_memory_bytes gauge",
                                          "process_resident_memory_bytes gauge",
                                          "process_start_time_seconds gauge",
                                          "process_cpu_seconds counter",
                                          "process_open_fds gauge",
                                          "process_max_fds gauge"});
}

TEST_CASE("process metrics: they leave the page with their registration",
          "[registry]") {
  const auto registry = Registry::create();
  { const auto process = *add_process_metrics(*registry); }
  Snapshot snapshot;
  registry->snapshot(snapshot);
  CHECK(snapshot.schema->families.empty());
}

TEST_CASE("process metrics: a second time is an error that names them",
          "[registry]") {
  const auto registry = Registry::create();
  const auto process = *add_process_metrics(*registry);
  const auto again = add_process_metrics(*registry);
  REQUIRE_FALSE(again.ok());
  CHECK(again.status().code() == absl::StatusCode::kAlreadyExists);
  CHECK_THAT(std::string(again.status().message()),
             Contains("process_open_fds"));
}

TEST_CASE("process metrics: without procfs there are none, and it is said",
          "[registry]") {
  const auto registry = Registry::create();
  const auto missing = add_process_metrics(*registry, "/nowhere");
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.status().code() == absl::StatusCode::kUnavailable);
  CHECK(missing.status().message() ==
        "proc = \"/nowhere\": cannot read /nowhere/self/stat; process metrics "
        "need procfs, usually mounted at /proc");
}

TEST_CASE("process metrics: open files are counted without our own",
          "[registry]") {
  const auto registry = Registry::create();
  const auto process = *add_process_metrics(*registry);
  const double before = value_of(*registry, "process_open_fds");
  std::vector<int> files;
  for (int i = 0; i < 300; ++i) {  // more than one read of the directory
    files.push_back(open("/dev/null", O_RDONLY));
  }
  CHECK(value_of(*registry, "process_open_fds") == before + 300.0);
  for (const int file : files) close(file);
  CHECK(value_of(*registry, "process_open_fds") == before);
}

TEST_CASE("process metrics: the limit on files is the soft one of now",
          "[registry]") {
  const auto registry = Registry::create();
  const auto process = *add_process_metrics(*registry);
  const FdLimit limit(777);
  CHECK(value_of(*registry, "process_max_fds") == 777.0);
}

TEST_CASE("process metrics: with no file descriptor left, all are in use",
          "[registry]") {
  const auto registry = Registry::create();
  const auto process = *add_process_metrics(*registry);
  const int lowest_free = open("/dev/null", O_RDONLY);
  close(lowest_free);
  const FdLimit limit(static_cast<rlim_t>(lowest_free));
  CHECK(value_of(*registry, "process_open_fds") ==
        static_cast<double>(lowest_free));
  CHECK(std::isnan(value_of(*registry, "process_virtual_memory_bytes")));
  CHECK(std::isnan(value_of(*registry, "process_resident_memory_bytes")));
  CHECK(value_of(*registry, "process_cpu_seconds") > 0.0);
}

TEST_CASE("process metrics: memory is that of the process, in bytes",
          "[registry]") {
  const auto registry = Registry::create();
  const auto process = *add_process_metrics(*registry);
  CHECK(value_of(*registry, "process_virtual_memory_bytes") ==
        Approx(status_bytes("VmSize:")).epsilon(0.02));
  // The kernel counts resident pages in batches for each thread.
  CHECK(value_of(*registry, "process_resident_memory_bytes") ==
        Approx(status_bytes("VmRSS:")).epsilon(0.2));

  constexpr std::size_t kSize = std::size_t{1} << 28;
  const double before = value_of(*registry, "process_virtual_memory_bytes");
  void* const memory = mmap(nullptr, kSize, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  CHECK(value_of(*registry, "process_virtual_memory_bytes") - before >=
        static_cast<double>(kSize));
  munmap(memory, kSize);
}

TEST_CASE("process metrics: CPU time never falls, and grows with work",
          "[registry]") {
  const auto registry = Registry::create();
  const auto process = *add_process_metrics(*registry);
  const double first = value_of(*registry, "process_cpu_seconds");
  double last = first;
  while (last < first + 0.01) {
    const double now = value_of(*registry, "process_cpu_seconds");
    REQUIRE(now >= last);
    last = now;
  }
}

TEST_CASE("process metrics: a program's name may look like the fields",
          "[registry]") {
  const auto registry = Registry::create();
  const auto process = *add_process_metrics(*registry);
  const double start = value_of(*registry, "process_start_time_seconds");
  CHECK(start > 0.0);
  std::array<char, 16> before{};
  REQUIRE(prctl(PR_GET_NAME, before.data()) == 0);
  REQUIRE(prctl(PR_SET_NAME, "a) R 1 (b) 2 3") == 0);
  CHECK(value_of(*registry, "process_start_time_seconds") == start);
  prctl(PR_SET_NAME, before.data());
}

TEST_CASE("process metrics: a forked child shows itself", "[registry]") {
  const auto registry = Registry::create();
  const auto process = *add_process_metrics(*registry);
  const int extra = open("/dev/null", O_RDONLY);
  double cpu = 0.0;
  while (cpu < 0.05) cpu = value_of(*registry, "process_cpu_seconds");
  const double files = value_of(*registry, "process_open_fds");
  const double start = value_of(*registry, "process_start_time_seconds");
  const pid_t child = fork();
  if (child == 0) {
    close(extra);
    const bool own =
        value_of(*registry, "process_open_fds") == files - 1.0 &&
        value_of(*registry, "process_start_time_seconds") >= start &&
        value_of(*registry, "process_cpu_seconds") < cpu;
    _exit(own ? 0 : 1);
  }
  int status = 1;
  close(extra);
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}
