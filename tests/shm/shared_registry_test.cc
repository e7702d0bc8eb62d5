#include "vllm_metrics/shm/shared_registry.h"

#include <sys/resource.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/shm/shared_folder.h"
#include "vllm_metrics/loggers/options.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"
#include "vllm_metrics/registry/registry.h"
#include "vllm_metrics/shm/segment_format.h"

namespace {

using namespace vllm_metrics;  // NOLINT
using shm::SharedRegistry;
using shm::SharedRegistryOptions;

class FixedClock final : public Clock {
 public:
  explicit FixedClock(double wall) : wall_(wall) {}
  double wall() const noexcept override { return wall_; }
  double monotonic() const noexcept override { return wall_; }

 private:
  double wall_;
};

std::unique_ptr<StatLoggerManager> manager_on(
    const std::shared_ptr<Registry>& registry, double wall) {
  StatLoggerOptions options;
  options.model_name = "m";
  options.max_model_len = 1024;
  options.default_loggers = false;
  options.registry = registry;
  options.clock = std::make_shared<FixedClock>(wall);
  auto made = StatLoggerManager::create(std::move(options));
  INFO(made.status());
  REQUIRE(made.ok());
  return *std::move(made);
}

void record(StatLoggerManager& manager, std::int64_t prompt, double ttft,
            std::int64_t running) {
  SchedulerStats scheduler;
  scheduler.num_running_reqs = running;
  IterationStats iteration;
  iteration.prompt_token_stats.total = prompt;
  iteration.time_to_first_tokens_iter.push_back(ttft);
  manager.record(&scheduler, &iteration);
}

constexpr std::string_view kTtft = "vllm:time_to_first_token_seconds";

}  // namespace

TEST_CASE(
    "SharedRegistry: every process shows the sum of all, and the newest "
    "gauge",
    "[shm]") {
  const SharedFolder folder;
  const auto a = folder.open();
  const auto b = folder.open();
  const auto manager_a = manager_on(a->registry(), 1.0);
  const auto manager_b = manager_on(b->registry(), 2.0);
  record(*manager_b, 100, 0.4, 3);
  record(*manager_a, 100, 0.2, 5);

  const std::string page = page_of(*a->registry());
  CHECK(page == page_of(*b->registry()));
  CHECK(
      sample(page, R"(vllm:prompt_tokens_total{engine="0",model_name="m"})") ==
      200.0);
  const std::string ttft(kTtft);
  const std::string labels = R"({engine="0",model_name="m"})";
  CHECK(sample(page, ttft + "_count" + labels) == 2.0);
  CHECK(
      sample(page, ttft + R"(_bucket{engine="0",le="0.25",model_name="m"})") ==
      1.0);
  CHECK(sample(page, ttft + R"(_bucket{engine="0",le="0.5",model_name="m"})") ==
        2.0);
  CHECK(sample(page, "vllm:num_requests_running" + labels) == 3.0);
  CHECK(page.find("pid=") == std::string::npos);
  CHECK(page.find("# TYPE vllm:prompt_tokens_total") ==
        page.rfind("# TYPE vllm:prompt_tokens_total"));
  CHECK(sample(page, "vllm_metrics_shared_processes") == 2.0);
}

TEST_CASE("SharedRegistry: a gauge that nobody has set is no sample", "[shm]") {
  const SharedFolder folder;
  const auto shared = folder.open();
  const auto manager = manager_on(shared->registry(), 1.0);
  CHECK(page_of(*shared->registry()).find("vllm:num_requests_running") ==
        std::string::npos);
  record(*manager, 1, 0.1, 0);
  CHECK(sample(page_of(*shared->registry()),
               R"(vllm:num_requests_running{engine="0",model_name="m"})") ==
        0.0);
}

TEST_CASE("SharedRegistry: a gauge is merged by its mode", "[shm]") {
  const SharedFolder folder;
  const auto a = folder.open();
  const auto b = folder.open();
  const auto set = [](SharedRegistry& shared, GaugeMode mode, double value) {
    auto gauge = shared.registry()->add_gauge(
        {.name = "g" + std::to_string(static_cast<int>(mode)),
         .help = "A gauge.",
         .mode = mode});
    REQUIRE(gauge.ok());
    (*gauge)->set(value);
    return *std::move(gauge);
  };
  const std::string pid = "{pid=\"" + std::to_string(::getpid()) + "\"}";
  const auto merged = [&](GaugeMode mode, double first, double second,
                          const std::string& labels = "") {
    const auto of_a = set(*a, mode, first);
    const auto of_b = set(*b, mode, second);
    return sample(page_of(*a->registry()),
                  "g" + std::to_string(static_cast<int>(mode)) + labels);
  };
  CHECK(merged(GaugeMode::kMax, 5.0, 3.0) == 5.0);
  CHECK(merged(GaugeMode::kMin, 5.0, 3.0) == 3.0);
  CHECK(merged(GaugeMode::kSum, 5.0, 3.0) == 8.0);
  CHECK(merged(GaugeMode::kLiveSum, 5.0, 3.0) == 8.0);
  CHECK(merged(GaugeMode::kMostRecent, 5.0, 3.0) == 3.0);
  CHECK(merged(GaugeMode::kAll, 5.0, 3.0, pid) == 3.0);
  CHECK(merged(GaugeMode::kLiveAll, 5.0, 3.0, pid) == 3.0);
}

TEST_CASE(
    "SharedRegistry: a process that ends leaves its counters and takes "
    "its live gauges with it",
    "[shm]") {
  const SharedFolder folder;
  const auto shared = folder.open();
  const int status = in_child([&] {
    const auto own = folder.open();
    auto& registry = *own->registry();
    (*registry.add_counter({.name = "c", .help = "A."}))->inc(5);
    (*registry.add_gauge(
         {.name = "g_live", .help = "A.", .mode = GaugeMode::kLiveSum}))
        ->set(2.0);
    (*registry.add_gauge(
         {.name = "g_all", .help = "A.", .mode = GaugeMode::kLiveAll}))
        ->set(2.0);
    (*registry.add_gauge({.name = "g", .help = "A."}))->set(2.0);
    ::kill(::getpid(), SIGKILL);
  });
  REQUIRE(WIFSIGNALED(status));
  for (int scrape = 0; scrape < 3; ++scrape) {
    const std::string page = page_of(*shared->registry());
    CHECK(sample(page, "c_total") == 5.0);
    CHECK(sample(page, "g") == 2.0);
    CHECK(page.find("g_live") == std::string::npos);
    CHECK(page.find("g_all") == std::string::npos);
    CHECK(sample(page, "vllm_metrics_shared_processes") == 1.0);
  }
  // Folded: what is left is the segment of this process and of its child.
  CHECK(folder.segments().size() == 1);
  CHECK(std::filesystem::exists(folder.path() + "/vllm_metrics.folded"));
}

TEST_CASE(
    "SharedRegistry: a forked child counts for itself, through the same "
    "handles",
    "[shm]") {
  const SharedFolder folder;
  const auto shared = folder.open();
  const auto manager = manager_on(shared->registry(), 1.0);
  const auto counter =
      shared->registry()->add_counter({.name = "c", .help = "A counter."});
  REQUIRE(counter.ok());
  (*counter)->inc(10);
  record(*manager, 100, 0.1, 1);
  for (int child = 0; child < 3; ++child) {
    in_child([&] {
      if ((*counter)->value() != 0) ::_exit(1);
      (*counter)->inc();
      record(*manager, 7, 0.1, 1);
      // A child of the child is another one.
      in_child([&] { (*counter)->inc(1000); });
    });
  }
  (*counter)->inc();
  const std::string page = page_of(*shared->registry());
  CHECK(sample(page, "c_total") == 10 + 1 + 3 * (1 + 1000));
  CHECK(
      sample(page, R"(vllm:prompt_tokens_total{engine="0",model_name="m"})") ==
      100.0 + 3 * 7.0);
}

TEST_CASE(
    "SharedRegistry: the next process goes on with the sums, or starts "
    "anew",
    "[shm]") {
  const SharedFolder folder;
  const auto count = [&](SharedRegistryOptions::Previous previous) {
    const auto shared = folder.open({.previous = previous});
    const auto counter =
        shared->registry()->add_counter({.name = "c", .help = "A counter."});
    (*counter)->inc();
    return sample(page_of(*shared->registry()), "c_total");
  };
  using enum SharedRegistryOptions::Previous;
  CHECK(count(kContinue) == 1.0);
  CHECK(count(kContinue) == 2.0);
  CHECK(count(kWipe) == 1.0);
  const auto alive = folder.open();
  CHECK(count(kWipe) == 2.0);
}

TEST_CASE(
    "SharedRegistry: a folder that cannot be used is an error at once, "
    "with the reason",
    "[shm]") {
  const SharedFolder folder;
  SECTION("it is a file") {
    const std::string path = folder.path() + "/file";
    write_file(path, "");
    const auto made = SharedRegistry::create({.folder = path});
    CHECK(made.status().message() == "folder " + path + ": Not a directory");
  }
  SECTION("its parent is not there") {
    const std::string path = folder.path() + "/a/b";
    const auto made = SharedRegistry::create({.folder = path});
    CHECK(made.status().message() ==
          "folder " + path + ": No such file or directory");
  }
  SECTION("there is no room for the segment") {
    ::signal(SIGXFSZ, SIG_IGN);
    struct rlimit before {};
    ::getrlimit(RLIMIT_FSIZE, &before);
    struct rlimit small = before;
    small.rlim_cur = 100'000;
    ::setrlimit(RLIMIT_FSIZE, &small);
    const auto made = SharedRegistry::create({.folder = folder.path()});
    ::setrlimit(RLIMIT_FSIZE, &before);
    CHECK(made.status().message() == "a segment of 1048576 bytes in " +
                                         folder.path() + ": File too large");
    CHECK(std::filesystem::is_empty(folder.path()));
  }
  SECTION("or private memory, if that is asked for") {
    std::string warning;
    const auto made = SharedRegistry::create(
        {.folder = folder.path() + "/a/b",
         .fall_back_to_private = true,
         .on_warning = [&](std::string_view text) { warning = text; }});
    REQUIRE(made.ok());
    CHECK((*made)->folder().empty());
    CHECK(warning.find("No such file or directory") != std::string::npos);
    REQUIRE((*made)->registry()->add_counter({.name = "c", .help = "A."}).ok());
  }
}

TEST_CASE("SharedRegistry: an option out of range is named", "[shm]") {
  const SharedFolder folder;
  const auto made =
      SharedRegistry::create({.folder = folder.path(), .segment_bytes = 1000});
  CHECK(made.status().message() ==
        "segment_bytes = 1000; allowed: 65536 to 2147483648");
}

TEST_CASE("SharedRegistry: a segment that is full refuses more series",
          "[shm]") {
  const SharedFolder folder;
  const auto shared = folder.open({.segment_bytes = 65536});
  std::vector<Handle<Counter>> kept;
  absl::Status full;
  for (int i = 0; full.ok() && i < 10'000; ++i) {
    auto made = shared->registry()->add_counter({.name = "c", .help = "A."},
                                                {{"n", std::to_string(i)}});
    if (made.ok()) {
      kept.push_back(*std::move(made));
    } else {
      full = made.status();
    }
  }
  CHECK(absl::IsResourceExhausted(full));
  CHECK(full.message().find("segment_bytes = 65536") != std::string::npos);
  CHECK(kept.size() > 100);
  kept.back()->inc();
  CHECK(sample(page_of(*shared->registry()),
               "c_total{n=\"" + std::to_string(kept.size() - 1) + "\"}") ==
        1.0);
  SECTION("series that left give their room to their like") {
    kept.pop_back();
    const std::string again = std::to_string(kept.size());
    CHECK(shared->registry()
              ->add_counter({.name = "c", .help = "A."}, {{"n", again}})
              .ok());
  }
}

TEST_CASE("SharedRegistry: a damaged file is left out, named once and counted",
          "[shm]") {
  const SharedFolder folder;
  std::vector<std::string> warnings;
  const auto reader = folder.open({.on_warning = [&](std::string_view text) {
    warnings.emplace_back(text);
  }});
  std::vector<std::unique_ptr<SharedRegistry>> others;
  std::vector<Handle<Counter>> counters;
  std::string damaged;
  for (const int n : {1, 10, 100}) {
    const auto before = folder.segments();
    others.push_back(folder.open());
    counters.push_back(
        *others.back()->registry()->add_counter({.name = "c", .help = "A."}));
    counters.back()->inc(static_cast<std::uint64_t>(n));
    if (n != 10) continue;
    for (const std::string& path : folder.segments()) {
      if (!std::ranges::binary_search(before, path)) damaged = path;
    }
  }
  const std::string good = file_text(damaged);
  const auto check_left_out = [&] {
    for (int scrape = 0; scrape < 2; ++scrape) {
      const std::string page = page_of(*reader->registry());
      CHECK(sample(page, "c_total") == 101.0);
      CHECK(sample(page, "vllm_metrics_unreadable_segments") == 1.0);
    }
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0].find(damaged) != std::string::npos);
  };
  // Its owner must not touch it any more.
  counters.erase(counters.begin() + 1);
  others.erase(others.begin() + 1);
  SECTION("cut to 10 bytes") {
    std::filesystem::resize_file(damaged, 10);
    check_left_out();
  }
  SECTION("cut inside its cells") {
    std::filesystem::resize_file(damaged, 200);
    check_left_out();
  }
  SECTION("garbage") {
    write_file(damaged, std::string(100'000, 'x'));
    check_left_out();
  }
  SECTION("a newer version") {
    std::string newer = good;
    ++newer[8];
    write_file(damaged, newer);
    check_left_out();
    CHECK(warnings[0].find("format version 4") != std::string::npos);
  }
  SECTION("more in use than there is") {
    std::string wrong = good;
    wrong[16 + 3] = wrong[24 + 3] = '\x7F';
    write_file(damaged, wrong);
    check_left_out();
    CHECK(warnings[0].find("cut short") != std::string::npos);
  }
  SECTION("sizes that lie") {
    std::string wrong = good;
    wrong[128 + 8] = '\xFF';
    wrong[128 + 15] = '\x7F';
    write_file(damaged, wrong);
    check_left_out();
  }
  SECTION("another schema than it was written with") {
    std::string wrong = good;
    wrong[128 + 64 + 8] ^= 1;
    write_file(damaged, wrong);
    check_left_out();
  }
}

TEST_CASE("SharedRegistry: a process is more than its pid", "[shm]") {
  const SharedFolder folder;
  in_child([&] {
    const auto own = folder.open();
    auto& registry = *own->registry();
    (*registry.add_counter({.name = "c", .help = "A."}))->inc(5);
    const auto gauge = registry.add_gauge(
        {.name = "g", .help = "A.", .mode = GaugeMode::kLiveSum});
    (*gauge)->set(2.0);
    ::kill(::getpid(), SIGKILL);
  });
  const std::string path = folder.segments().at(0);
  std::string text = file_text(path);
  shm::SegmentHeader header;
  std::memcpy(static_cast<void*>(&header), text.data(), sizeof header);
  header.pid = ::getpid();  // which is alive
  bool is_alive = false;
  SECTION("another one has it now") {}
  SECTION("it was one before the machine was started") {
    header.start_time = 0;
    header.boot_id[0] ^= 1;
  }
  SECTION("it is one of another pid namespace, who may be alive") {
    header.pid_namespace ^= 1;
    is_alive = true;
  }
  text.replace(0, sizeof header, reinterpret_cast<const char*>(&header),
               sizeof header);
  write_file(path, text);
  const auto shared = folder.open();
  for (int scrape = 0; scrape < 2; ++scrape) {
    const std::string page = page_of(*shared->registry());
    CHECK(sample(page, "c_total") == 5.0);
    CHECK((sample(page, "g") == 2.0) == is_alive);
    CHECK(sample(page, "vllm_metrics_shared_processes") ==
          (is_alive ? 2.0 : 1.0));
  }
  CHECK(std::filesystem::exists(path) == is_alive);
}

TEST_CASE("SharedRegistry: any byte of a segment may be wrong", "[shm]") {
  const SharedFolder folder;
  {
    const auto other = folder.open({.segment_bytes = 65536});
    const auto manager = manager_on(other->registry(), 1.0);
    record(*manager, 1, 0.1, 1);
  }
  const std::string path = folder.segments().at(0);
  const std::string good = file_text(path);
  const auto reader = SharedRegistry::create(
      {.folder = folder.path(), .read_only = true, .on_warning = [](auto) {}});
  REQUIRE(reader.ok());
  std::uint64_t random = 1;
  for (int i = 0; i < 300; ++i) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    std::string wrong = good;
    wrong[(random >> 33) % (i % 2 == 0 ? 320 : 24'000)] ^=
        static_cast<char>(1 << (random >> 61));
    std::filesystem::remove(path);
    write_file(path, wrong);
    const std::string page = page_of(*(*reader)->registry());
    CHECK(sample(page, "vllm_metrics_unreadable_segments") <= 1.0);
    std::filesystem::remove(path);
    page_of(*(*reader)->registry());  // lets go of the file
  }
}

TEST_CASE("SharedRegistry: files of others in the folder are not touched",
          "[shm]") {
  const SharedFolder folder;
  const std::string theirs = folder.path() + "/counter_17.db";
  write_file(theirs, "theirs");
  const auto shared =
      folder.open({.previous = SharedRegistryOptions::Previous::kWipe});
  const std::string page = page_of(*shared->registry());
  CHECK(sample(page, "vllm_metrics_unreadable_segments") == 0.0);
  CHECK(file_text(theirs) == "theirs");
  const auto mode = std::filesystem::status(folder.segments()[0]).permissions();
  CHECK(mode == (std::filesystem::perms::owner_read |
                 std::filesystem::perms::owner_write));
}

TEST_CASE("SharedRegistry: who only looks leaves no trace", "[shm]") {
  const SharedFolder folder;
  in_child([&] {
    const auto shared = folder.open();
    (*shared->registry()->add_counter({.name = "c", .help = "A."}))->inc();
  });
  const auto looking =
      SharedRegistry::create({.folder = folder.path(), .read_only = true});
  REQUIRE(looking.ok());
  CHECK(sample(page_of(*(*looking)->registry()), "c_total") == 1.0);
  CHECK(folder.segments().size() == 1);
  CHECK_FALSE(std::filesystem::exists(folder.path() + "/vllm_metrics.folded"));
  CHECK(absl::IsFailedPrecondition((*looking)
                                       ->registry()
                                       ->add_counter({.name = "d", .help = "A"})
                                       .status()));
}
