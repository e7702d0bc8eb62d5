#pragma once

// A folder that processes share, and processes at work in it.

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engines.h"
#include "step_data.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"
#include "vllm_metrics/registry/registry.h"
#include "vllm_metrics/shm/shared_registry.h"

namespace vllm_metrics::bench {

class LiveProcesses {
 public:
  // `processes` at work, one engine each; 200 steps are recorded.
  explicit LiveProcesses(std::size_t processes) {
    if (::mkdtemp(folder_.data()) == nullptr) fail("mkdtemp");
    for (std::size_t i = 0; i < processes; ++i) begin(/*stays=*/true);
  }
  ~LiveProcesses() {
    for (const pid_t one : alive_) {
      ::kill(one, SIGKILL);
      ::waitpid(one, nullptr, 0);
    }
    std::filesystem::remove_all(folder_);
  }
  LiveProcesses(const LiveProcesses&) = delete;
  LiveProcesses& operator=(const LiveProcesses&) = delete;

  // As many that record and end.
  void pass_through(std::size_t processes) {
    for (std::size_t i = 0; i < processes; ++i) begin(/*stays=*/false);
  }

  std::unique_ptr<shm::SharedRegistry> open(bool read_only) const {
    auto made = shm::SharedRegistry::create(
        {.folder = folder_, .read_only = read_only});
    if (!made.ok()) fail(made.status().ToString().c_str());
    return *std::move(made);
  }

 private:
  [[noreturn]] static void fail(const char* why) {
    std::fprintf(stderr, "%s\n", why);
    std::exit(1);
  }

  void begin(bool stays) {
    int ready[2];
    if (::pipe(ready) != 0) fail("pipe");
    const pid_t child = ::fork();
    if (child == 0) {
      const auto shared = open(/*read_only=*/false);
      auto options = prometheus_only(1);
      options.registry = shared->registry();
      const auto manager = make_manager(std::move(options));
      const auto steps = make_steps({});
      for (std::size_t i = 0; i < 200; ++i)
        record(*manager, steps[i % steps.size()]);
      if (::write(ready[1], "", 1) != 1) ::_exit(1);
      while (stays) ::pause();
      ::_exit(0);
    }
    ::close(ready[1]);
    char byte;
    if (::read(ready[0], &byte, 1) != 1) fail("a recorder has failed");
    ::close(ready[0]);
    if (stays) {
      alive_.push_back(child);
    } else {
      ::waitpid(child, nullptr, 0);
    }
  }

  std::string folder_ = "/dev/shm/vllm_metrics_bench-XXXXXX";
  std::vector<pid_t> alive_;
};

}  // namespace vllm_metrics::bench
