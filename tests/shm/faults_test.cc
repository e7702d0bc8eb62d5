// What goes wrong around recording processes: full disks, custom loggers that
// misbehave, clocks that step, forks without end. A reader looks all the while.
// `./dev test` runs a short form, `./dev soak` the long one.

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/shm/page_judge.h"
#include "tests/shm/recorders.h"
#include "tests/shm/shared_folder.h"

namespace {

using namespace vllm_metrics;  // NOLINT
using shm::SharedRegistry;

// Mounts a file system of its own for this process and its children, as root
// or in a user namespace. False where neither may.
bool mount_small(const std::string& path, const std::string& size) {
  const auto write_to = [](const char* file, const std::string& text) {
    std::ofstream(file) << text;
  };
  const std::string user = std::to_string(::getuid());
  const std::string group = std::to_string(::getgid());
  if (::unshare(CLONE_NEWNS) != 0) {
    if (::unshare(CLONE_NEWNS | CLONE_NEWUSER) != 0) return false;
    write_to("/proc/self/setgroups", "deny");
    write_to("/proc/self/uid_map", "0 " + user + " 1");
    write_to("/proc/self/gid_map", "0 " + group + " 1");
  }
  return ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("tmpfs", path.c_str(), "tmpfs", 0, ("size=" + size).c_str()) ==
             0;
}

// Takes all that is left there.
void fill(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  for (const std::size_t piece : {std::size_t{65536}, std::size_t{1}}) {
    const std::string text(piece, 'x');
    while (::write(file, text.data(), piece) > 0) {
    }
  }
  ::close(file);
}

// What did not hold in a small file system at `folder`, a line each.
std::string on_a_full_disk(const SharedFolder& folder) {
  std::string failed;
  const auto expect = [&failed](bool holds, const std::string& what) {
    if (!holds) failed += what + '\n';
  };
  std::vector<std::string> warnings;
  const auto warn = [&](std::string_view text) { warnings.emplace_back(text); };
  auto shared = SharedRegistry::create(
      {.folder = folder.path(), .segment_bytes = 1 << 20, .on_warning = warn});
  if (!shared.ok()) return shared.status().ToString();
  const std::shared_ptr<Registry>& registry = (*shared)->registry();
  const auto manager = manager_of(options_on(registry));
  const IterationStats step = a_step();
  const auto tokens = [&] {
    return sample(page_of(*registry), of_engine("vllm:prompt_tokens_total")) /
           kPromptTokens;
  };
  in_child([&] { manager->record(nullptr, &step); });  // leaves a segment

  const auto second = SharedRegistry::create({.folder = folder.path()});
  expect(second.status().message() == "a segment of 1048576 bytes in " +
                                          folder.path() +
                                          ": No space left on device",
         second.status().ToString());
  const auto alone = SharedRegistry::create({.folder = folder.path(),
                                             .fall_back_to_private = true,
                                             .on_warning = warn});
  expect(alone.ok() && (*alone)->folder().empty() && warnings.size() == 1,
         "a fall back with a warning");

  fill(folder.path() + "/filler");
  for (int i = 0; i < 1000; ++i) manager->record(nullptr, &step);
  for (int scrape = 0; scrape < 3; ++scrape)
    expect(tokens() == 1001, "all counted while the disk is full");
  expect(folder.segments().size() == 2 && warnings.size() == 2,
         "nothing to be folded, which is said once");
  // Has no room for a segment; it runs all the same.
  expect(in_child([&] {
           manager->record(nullptr, &step);
           page_of(*registry);
         }) == 0,
         "a child that is forked");
  expect(tokens() == 1001, "its count is on no page");
  std::filesystem::remove(folder.path() + "/filler");
  for (int scrape = 0; scrape < 2; ++scrape)
    expect(tokens() == 1001, "all counted when there is room again");
  expect(folder.segments().size() == 1, "folded when there is room again");
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    expect(entry.path().extension() != ".tmp", "nothing unfinished is left");
  return failed;
}

// Closed until it is opened.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return is_open_; });
  }
  void wait_for_one() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_ > 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = false;
  int waiting_ = 0;
};

class Custom final : public StatLoggerBase {
 public:
  using Call = std::function<void(int engine_index)>;
  Custom(Call record, std::function<void()> log)
      : record_(std::move(record)), log_(std::move(log)) {}

  std::string_view name() const override { return "custom"; }
  void record(const StepRecord& step) override { record_(step.engine_index); }
  void log() override { log_(); }

 private:
  Call record_;
  std::function<void()> log_;
};

// Of two engines, with such a custom logger before vLLM's.
StatLoggerOptions options_with(
    const std::shared_ptr<Registry>& registry, Custom::Call record,
    std::function<void()> log = [] {}) {
  auto options = options_on(registry);
  options.engine_indexes = {0, 1};
  options.factories.emplace_back(AggregateStatLoggerFactory(
      [record = std::move(record),
       log = std::move(log)](const StatLoggerOptions&) {
        return std::make_unique<Custom>(record, log);
      }));
  return options;
}

double steps_of(const std::string& page, int engine) {
  return sample(page, "vllm:prompt_tokens_total{engine=\"" +
                          std::to_string(engine) + "\",model_name=\"m\"}") /
         kPromptTokens;
}

constexpr const char* kErrors =
    R"(vllm_metrics_logger_errors_total{logger="custom",model_name="m"})";

}  // namespace

TEST_CASE(
    "SharedRegistry: a disk that is full is an error at the start, and "
    "nobody's "
    "end later",
    "[shm]") {
  const SharedFolder folder;
  int report[2];
  REQUIRE(::pipe(report) == 0);
  constexpr int kMayNotMount = 77;
  const int status = in_child([&] {
    if (!mount_small(folder.path(), "2200k")) ::_exit(kMayNotMount);
    const std::string failed = on_a_full_disk(folder);
    if (::write(report[1], failed.data(), failed.size()) < 0) ::_exit(1);
  });
  ::close(report[1]);
  std::string failed(4096, '\0');
  const ssize_t size = ::read(report[0], failed.data(), failed.size());
  failed.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  ::close(report[0]);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kMayNotMount) {
    WARN("not tested: no file system may be mounted here");
    return;
  }
  CHECK(status == 0);
  CHECK(failed == "");
}

TEST_CASE(
    "SharedRegistry: custom loggers throw and allocate at every step, and "
    "every "
    "page holds",
    "[shm]") {
  const SharedFolder folder;
  const auto shared = folder.open();
  std::vector<std::string> kept;
  int calls = 0;
  const auto manager = manager_of(options_with(
      shared->registry(),
      [&](int) {
        kept.emplace_back(static_cast<std::size_t>(1000 + calls % 5000), 'x');
        if (kept.size() > 100) kept.clear();
        if (++calls % 2 == 0) throw std::runtime_error("no");
        if (calls % 3 == 0) throw 17;  // NOLINT: nothing that is expected
      },
      [] { throw std::bad_alloc(); }));
  const int steps = times(300, 30'000);
  std::atomic<bool> done = false;
  std::thread recorder([&] {
    const IterationStats step = a_step();
    for (int i = 0; i < steps; ++i) {
      manager->record(nullptr, &step);
      if (i % 100 == 0) manager->log();
    }
    done = true;
  });
  PageJudge judge;
  while (!done) judge.judge(*shared->registry());
  recorder.join();
  judge.judge(*shared->registry());
  const std::string page = page_of(*shared->registry());
  CHECK(steps_of(page, 0) == steps);
  CHECK(sample(page, kErrors) == steps * 2 / 3 + steps / 100);
}

TEST_CASE(
    "SharedRegistry: a custom logger that blocks holds up its engine, and "
    "neither the others nor the page",
    "[shm]") {
  const SharedFolder folder;
  const auto shared = folder.open();
  Gate gate;
  Gate log_gate;
  const auto manager = manager_of(options_with(
      shared->registry(),
      [&](int engine) {
        if (engine == 0) gate.pass();
      },
      [&] { log_gate.pass(); }));
  const IterationStats step = a_step();
  std::thread blocked([&] { manager->record(nullptr, &step); });
  gate.wait_for_one();
  std::thread blocked_log([&] { manager->log(); });
  log_gate.wait_for_one();
  PageJudge judge;
  for (int i = 1; i <= 20; ++i) {
    manager->record(nullptr, &step, nullptr, 1);
    judge.judge(*shared->registry());
    const std::string page = page_of(*shared->registry());
    CHECK(steps_of(page, 0) == 0);
    CHECK(steps_of(page, 1) == i);
  }
  gate.open();
  log_gate.open();
  blocked.join();
  blocked_log.join();
  judge.judge(*shared->registry());
  CHECK(steps_of(page_of(*shared->registry()), 0) == 1);
}

TEST_CASE(
    "SharedRegistry: step metrics that block inside the step leave the page as "
    "it was before",
    "[shm]") {
  const SharedFolder folder;
  const auto shared = folder.open();
  Gate gate;
  auto options = options_on(shared->registry());
  options.step_metrics.metrics.push_back(
      {.family = {.name = "own", .help = "A."}});
  std::atomic<bool> blocks = false;
  options.step_metrics.write = [&](const StepRecord&, StepWriter&) {
    if (blocks) gate.pass();
  };
  const auto manager = manager_of(std::move(options));
  const IterationStats step = a_step();
  manager->record(nullptr, &step);
  CHECK(steps_of(page_of(*shared->registry()), 0) == 1);
  blocks = true;
  std::thread blocked([&] { manager->record(nullptr, &step); });
  gate.wait_for_one();
  PageJudge judge;
  judge.judge(*shared->registry());
  CHECK(steps_of(page_of(*shared->registry()), 0) == 1);
  gate.open();
  blocked.join();
  judge.judge(*shared->registry());
  CHECK(steps_of(page_of(*shared->registry()), 0) == 2);
}

TEST_CASE("SharedRegistry: a clock may step to any time, or to none", "[shm]") {
  const SharedFolder folder;
  const auto shared = folder.open();
  const auto clock = std::make_shared<WallClock>(1000.0);
  auto options = options_on(shared->registry());
  options.clock = clock;
  const auto manager = manager_of(std::move(options));
  const IterationStats step = a_step();
  SchedulerStats scheduler;
  PageJudge judge;
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double now :
       {1000.0, 900.0, 2000.0, 1.0, 0.0, -5.0, infinity, -infinity,
        std::numeric_limits<double>::quiet_NaN(), 1e300, 3000.0}) {
    CAPTURE(now);
    clock->now = now;
    scheduler.num_running_reqs++;
    manager->record(&scheduler, &step);
    judge.judge(*shared->registry());
    CHECK(sample(page_of(*shared->registry()),
                 of_engine("vllm:num_requests_running")) ==
          static_cast<double>(scheduler.num_running_reqs));
  }
  // Nonsense is older than what another process has set at any time.
  const auto other = folder.open();
  const auto other_manager = manager_of(options_on(other->registry(), 1.0));
  SchedulerStats of_other;
  of_other.num_running_reqs = 77;
  other_manager->record(&of_other, nullptr);
  for (const double now : {infinity, 0.0}) {
    clock->now = now;
    manager->record(&scheduler, nullptr);
    CHECK(sample(page_of(*shared->registry()),
                 of_engine("vllm:num_requests_running")) == 77.0);
  }
}

TEST_CASE(
    "SharedRegistry: children are forked without end, record and die, and "
    "every "
    "page holds",
    "[shm]") {
  const int forks = times(60, 2000);
  const SharedFolder folder;
  const auto shared = folder.open();
  const auto manager = manager_of(options_on(shared->registry()));
  const IterationStats step = a_step();
  PageJudge judge;
  int steps = 0;
  for (int i = 0; i < forks; ++i) {
    manager->record(nullptr, &step);
    const int status = in_child([&] {
      manager->record(nullptr, &step);
      if (i % 3 == 0) ::kill(::getpid(), SIGKILL);
      // It reads, and folds, as its parent does.
      if (i % 3 == 1) page_of(*shared->registry());
      if (i % 5 == 0) in_child([&] { manager->record(nullptr, &step); });
    });
    const bool has_child = i % 3 != 0 && i % 5 == 0;
    CHECK((i % 3 == 0 ? WIFSIGNALED(status) : status == 0));
    steps += has_child ? 3 : 2;
    if (i % 7 == 0) judge.judge(*shared->registry());
  }
  judge.judge(*shared->registry());
  CHECK(steps_of(page_of(*shared->registry()), 0) == steps);
  CHECK(folder.segments().size() == 1);
}
