#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <new>
#include <string>
#include <string_view>

#include "src/tools/sim/processes.h"

namespace vllm_metrics::sim {
namespace {

// Waits until process `number` has ended, and leaves its status to look().
void wait_for(const Processes& processes, std::size_t number) {
  siginfo_t info;
  ::waitid(P_PID, static_cast<id_t>(processes.pid(number)), &info,
           WEXITED | WNOWAIT);
}

std::string failures_of(Processes& processes) {
  std::string all;
  processes.look(
      [&all](std::string_view failed) { all.append(failed) += ';'; });
  return all;
}

std::string named(const Processes& processes, std::size_t number) {
  return "process " + std::to_string(number + 1) + " of 2 (pid " +
         std::to_string(processes.pid(number)) + ") ";
}

TEST_CASE("Processes: one that throws fails alone", "[tools]") {
  const auto started = Processes::start(2, [](std::size_t i, std::FILE* out) {
    if (i == 1) throw std::bad_alloc();
    std::fputs("done", out);
    return 0;
  });
  REQUIRE(started.ok());
  Processes& processes = **started;
  wait_for(processes, 0);
  wait_for(processes, 1);
  CHECK(failures_of(processes) == named(processes, 1) + "ended with status 1;");
  CHECK(processes.output(0) == "done");
  CHECK_FALSE(processes.any_runs());
  CHECK(processes.any_failed());
}

TEST_CASE("Processes: they end where SIGCHLD was ignored before", "[tools]") {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  const auto started =
      Processes::start(2, [](std::size_t, std::FILE*) { return 0; });
  REQUIRE(started.ok());
  Processes& processes = **started;
  wait_for(processes, 0);
  wait_for(processes, 1);
  CHECK(failures_of(processes) == "");
  CHECK_FALSE(processes.any_runs());
  CHECK_FALSE(processes.any_failed());
  std::signal(SIGCHLD, before);
}

TEST_CASE("Processes: one whose status another took has failed", "[tools]") {
  const auto started =
      Processes::start(2, [](std::size_t, std::FILE*) { return 0; });
  REQUIRE(started.ok());
  Processes& processes = **started;
  wait_for(processes, 0);
  ::waitpid(processes.pid(1), nullptr, 0);
  CHECK(failures_of(processes) ==
        named(processes, 1) + "ended, status unknown: No child processes;");
  CHECK_FALSE(processes.any_runs());
  CHECK(processes.any_failed());
}

}  // namespace
}  // namespace vllm_metrics::sim
