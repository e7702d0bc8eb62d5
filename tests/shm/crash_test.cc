// Processes that die, stop or are forked at any moment, and a reader that looks
// all the while. `./dev test` runs a short form, `./dev soak` the long one.

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdint>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/shm/page_judge.h"
#include "tests/shm/recorders.h"
#include "tests/shm/shared_folder.h"
#include "vllm_metrics/shm/segment_format.h"

namespace {

using namespace vllm_metrics;  // NOLINT

// The file of process `pid`, open.
int open_segment(const SharedFolder& folder, pid_t pid) {
  const std::string part = "-" + std::to_string(pid) + "-";
  for (const std::string& path : folder.segments()) {
    if (path.find(part) != std::string::npos)
      return ::open(path.c_str(), O_RDONLY);
  }
  return -1;
}

// Whether its first bank was left inside a step.
bool is_left_open(int segment) {
  shm::BlockHeader block;
  const off_t at = sizeof(shm::SegmentHeader);
  if (::pread(segment, static_cast<void*>(&block), sizeof block, at) !=
      static_cast<ssize_t>(sizeof block))
    return false;
  std::uint64_t sequence = 0;
  const auto bank_at =
      at + static_cast<off_t>(shm::to_line(sizeof block + block.schema_bytes));
  return ::pread(segment, &sequence, sizeof sequence, bank_at) == 8 &&
         (sequence & 1) != 0;
}

// Kills `kills` recorders, each at a moment of its own. Returns how many died
// inside a step. In a process of its own.
int kill_recorders(const SharedFolder& folder, StatLoggerManager& manager,
                   int kills) {
  int inside = 0;
  std::uint64_t random = 12345;
  const IterationStats step = a_step();
  // How many die inside is chance: go on until a tenth has, within reason.
  for (int i = 0; i < kills || (inside < kills / 10 && i < 20 * kills); ++i) {
    int started[2];
    if (::pipe(started) != 0) ::_exit(250);
    const pid_t child = ::fork();
    if (child == 0) {
      manager.record(nullptr, &step);
      if (::write(started[1], "", 1) != 1) ::_exit(1);
      for (;;) manager.record(nullptr, &step);
    }
    ::close(started[1]);
    char byte = 0;
    if (::read(started[0], &byte, 1) != 1) ::_exit(251);
    ::close(started[0]);
    const int segment = open_segment(folder, child);
    random = random * 6364136223846793005U + 1442695040888963407U;
    for (std::uint64_t spin = random >> 44; spin != 0; --spin)
      static_cast<void>(*static_cast<volatile std::uint64_t*>(&random));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    inside += is_left_open(segment) ? 1 : 0;
    ::close(segment);
  }
  return inside;
}

}  // namespace

TEST_CASE(
    "SharedRegistry: recorders are killed at any moment, and every page "
    "holds",
    "[shm]") {
  const int kills = times(60, 1000);
  const SharedFolder folder;
  const auto shared = folder.open();
  const auto manager = manager_of(options_on(shared->registry()));
  int result[2];
  REQUIRE(::pipe(result) == 0);
  const pid_t killer = ::fork();
  if (killer == 0) {
    const int inside = kill_recorders(folder, *manager, kills);
    ::_exit(::write(result[1], &inside, sizeof inside) == sizeof inside ? 0
                                                                        : 1);
  }
  PageJudge judge;
  int status = -1;
  int pages = 0;
  for (; ::waitpid(killer, &status, WNOHANG) == 0; ++pages)
    judge.judge(*shared->registry());
  judge.judge(*shared->registry());
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == 0);
  int inside = 0;
  REQUIRE(::read(result[0], &inside, sizeof inside) == sizeof inside);
  ::close(result[0]);
  ::close(result[1]);
  CAPTURE(kills, inside, pages);
  CHECK(pages > 0);
  CHECK(inside >= kills / 10);
  CHECK(judge.torn() == inside);
  CHECK(folder.segments().size() == 1);
}

TEST_CASE(
    "SharedRegistry: a process that is killed inside a step leaves what "
    "it had written of it",
    "[shm]") {
  const SharedFolder folder;
  const auto shared = folder.open();
  const int status = in_child([&] {
    auto options = options_on(folder.open()->registry());
    bool kills = false;
    options.step_metrics.metrics.push_back(
        {.family = {
             .name = "own", .help = "A.", .kind = MetricKind::kCounter}});
    options.step_metrics.write = [&](const StepRecord&, StepWriter& writer) {
      if (kills) ::kill(::getpid(), SIGKILL);
      writer.inc(0);
    };
    const auto manager = manager_of(std::move(options));
    const IterationStats step = a_step();
    manager->record(nullptr, &step);
    kills = true;
    manager->record(nullptr, &step);
  });
  REQUIRE(WIFSIGNALED(status));
  for (int scrape = 0; scrape < 3; ++scrape) {
    const std::string page = page_of(*shared->registry());
    CHECK(sample(page, of_engine("vllm:prompt_tokens_total")) ==
          2 * kPromptTokens);
    CHECK(sample(page, of_engine("own_total")) == 1);
    CHECK(sample(page, "vllm_metrics_torn_banks") == 1.0);
  }
}

TEST_CASE(
    "SharedRegistry: a process that is stopped inside a step is shown as "
    "it was before",
    "[shm]") {
  const SharedFolder folder;
  const auto shared = folder.open();
  const pid_t child = ::fork();
  if (child == 0) {
    auto options = options_on(folder.open()->registry());
    options.step_metrics.metrics.push_back(
        {.family = {.name = "own", .help = "A."}});
    options.step_metrics.write = [](const StepRecord&, StepWriter&) {
      ::raise(SIGSTOP);
    };
    const auto manager = manager_of(std::move(options));
    ::raise(SIGSTOP);
    const IterationStats step = a_step();
    manager->record(nullptr, &step);
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  const auto tokens = [&] {
    return sample(page_of(*shared->registry()),
                  of_engine("vllm:prompt_tokens_total"));
  };
  int status = 0;
  ::waitpid(child, &status, WUNTRACED);
  CHECK(tokens() == 0.0);
  ::kill(child, SIGCONT);
  ::waitpid(child, &status, WUNTRACED);
  REQUIRE(WIFSTOPPED(status));
  CHECK(tokens() == 0.0);  // inside the step
  CHECK(tokens() == 0.0);
  ::kill(child, SIGCONT);
  ::waitpid(child, &status, WUNTRACED);
  CHECK(tokens() == kPromptTokens);
  CHECK(sample(page_of(*shared->registry()), "vllm_metrics_torn_banks") == 0.0);
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  CHECK(tokens() == kPromptTokens);
}

TEST_CASE(
    "SharedRegistry: of many processes that live for one count, none is "
    "lost",
    "[shm]") {
  const int processes = times(200, 2000);
  const SharedFolder folder;
  const auto shared = folder.open({.segment_bytes = 65536});
  const auto counter =
      shared->registry()->add_counter({.name = "c", .help = "A counter."});
  REQUIRE(counter.ok());
  PageJudge judge;
  double last = 0.0;
  std::vector<pid_t> children;
  for (int i = 0; i < processes; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      (*counter)->inc();
      ::_exit(0);
    }
    children.push_back(child);
    if (children.size() < 8) continue;
    for (const pid_t one : children) ::waitpid(one, nullptr, 0);
    children.clear();
    if (i % 5 != 0) continue;
    const double now = sample(page_of(*shared->registry()), "c_total");
    CHECK(now >= last);
    last = now;
  }
  for (const pid_t one : children) ::waitpid(one, nullptr, 0);
  CHECK(sample(page_of(*shared->registry()), "c_total") == processes);
  page_of(*shared->registry());
  CHECK(folder.segments().size() == 1);
}

TEST_CASE(
    "SharedRegistry: several processes fold at once, and nothing counts "
    "twice",
    "[shm]") {
  const int processes = times(40, 400);
  const SharedFolder folder;
  const auto shared = folder.open({.segment_bytes = 65536});
  const auto counter =
      shared->registry()->add_counter({.name = "c", .help = "A counter."});
  std::vector<pid_t> children;
  for (int i = 0; i < processes; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      (*counter)->inc();
      double last = 0.0;
      for (int scrape = 0; scrape < 5; ++scrape) {
        const double now = sample(page_of(*shared->registry()), "c_total");
        if (!(now >= last && now <= processes)) ::_exit(1);
        last = now;
      }
      // Some of them die while they fold.
      if (i % 4 == 0) ::kill(::getpid(), SIGKILL);
      ::_exit(0);
    }
    children.push_back(child);
    if (children.size() < 6) continue;
    ::kill(children.front(), SIGKILL);
    int status = 0;
    ::waitpid(children.front(), &status, 0);
    CHECK((WIFSIGNALED(status) || WEXITSTATUS(status) == 0));
    children.erase(children.begin());
  }
  for (const pid_t one : children) ::waitpid(one, nullptr, 0);
  // A child that was killed before it counted has not counted.
  const double total = sample(page_of(*shared->registry()), "c_total");
  CHECK(total <= processes);
  CHECK(sample(page_of(*shared->registry()), "c_total") == total);
}
