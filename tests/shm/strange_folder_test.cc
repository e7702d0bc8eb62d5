// What others may have put into a folder that processes share.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tests/shm/shared_folder.h"
#include "vllm_metrics/shm/segment_format.h"

namespace {

using namespace vllm_metrics;  // NOLINT
using shm::SharedRegistryOptions;

void leave_segment(const SharedFolder& folder) {
  in_child([&] {
    const auto shared = folder.open();
    (*shared->registry()->add_counter({.name = "c", .help = "A."}))->inc();
  });
}

void write_at(const std::string& path, off_t at, const void* bytes,
              std::size_t size) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  REQUIRE(file >= 0);
  CHECK(::pwrite(file, bytes, size, at) == static_cast<ssize_t>(size));
  ::close(file);
}

// Forks with standard error at `file`, where the child has no folder to make a
// segment in. What became of the child; killed if the fork does not return.
int fork_alone(int file) {
  return in_child([file] {
    ::alarm(20);
    auto folder = std::make_unique<SharedFolder>();
    const auto shared = folder->open();
    folder.reset();
    ::dup2(file, STDERR_FILENO);
    if (in_child([] {}) != 0) ::_exit(1);
  });
}

std::shared_ptr<const Schema> schema_of(const Registry& registry) {
  Snapshot snapshot;
  registry.snapshot(snapshot);
  return snapshot.schema;
}

}  // namespace

TEST_CASE("SharedRegistry: nobody waits for a FIFO that has a file's name",
          "[shm]") {
  const SharedFolder folder;
  leave_segment(folder);
  const auto put = [&](const char* name) {
    REQUIRE(::mkfifo((folder.path() + "/" + name).c_str(), 0666) == 0);
  };
  double unreadable = 0.0;
  SECTION("held by all") { put("vllm_metrics.hold"); }
  SECTION("held by who folds") { put("vllm_metrics.lock"); }
  SECTION("being made") { put("vllm_metrics.folded.tmp"); }
  SECTION("the sums") {
    put("vllm_metrics.folded");
    unreadable = 1.0;
  }
  SECTION("a segment") {
    put("vllm_metrics-0-1-2-3.segment");
    unreadable = 1.0;
  }
  const auto shared = folder.open({.on_warning = [](auto) {}});
  const std::string page = page_of(*shared->registry());
  CHECK(sample(page, "c_total") == 1.0);
  CHECK(sample(page, "vllm_metrics_unreadable_segments") == unreadable);
}

TEST_CASE("SharedRegistry: fresh folders are those of one's own, with a file",
          "[shm]") {
  const SharedFolder place;
  ::unsetenv("PROMETHEUS_MULTIPROC_DIR");
  ::setenv("XDG_RUNTIME_DIR", place.path().c_str(), 1);
  const std::string theirs = place.path() + "/vllm_metrics-theirs";
  const std::string hold = theirs + "/vllm_metrics.hold";
  REQUIRE(std::filesystem::create_directory(theirs));
  bool stays = true;
  SECTION("a FIFO is held by nobody") {
    REQUIRE(::mkfifo(hold.c_str(), 0666) == 0);
  }
  SECTION("another user's") {
    write_file(hold, "");
    stays = ::chown(theirs.c_str(), 12345, 12345) == 0;
  }
  SECTION("one of this user's that was left") {
    write_file(hold, "");
    stays = false;
  }
  CHECK(shm::SharedRegistry::create().ok());
  CHECK(std::filesystem::exists(theirs) == stays);
  ::unsetenv("XDG_RUNTIME_DIR");
}

TEST_CASE("SharedRegistry: a file takes memory for what is in it, not its size",
          "[shm]") {
  const SharedFolder folder;
  const std::string folded = folder.path() + "/vllm_metrics.folded";
  const auto make_long = [](const std::string& path) {
    REQUIRE(::truncate(path.c_str(), off_t{10} << 40) == 0);
  };
  leave_segment(folder);
  SECTION("the sums, empty") {
    write_file(folded, "");
    make_long(folded);
  }
  SECTION("the sums, longer than they were") {
    folder.open();
    leave_segment(folder);
    make_long(folded);
  }
  SECTION("the sums, with headers that agree on it") {
    folder.open();
    leave_segment(folder);
    const std::uint64_t size = std::uint64_t{10} << 40;
    const std::string text = file_text(folded);
    std::uint64_t names = 0;
    std::memcpy(&names, text.data() + 128 + 48, sizeof names);
    names += size - text.size();
    write_at(folded, 128 + 48, &names, sizeof names);
    write_at(folded, 24, &size, sizeof size);
    make_long(folded);
  }
  SECTION("a segment") {
    const std::string path = folder.path() + "/vllm_metrics-0-1-2-3.segment";
    std::filesystem::copy_file(folder.segments().at(0), path);
    const std::uint64_t size = std::uint64_t{10} << 40;
    for (const off_t at : {16, 24, 128 + 8})
      write_at(path, at, &size, sizeof size);
    make_long(path);
  }
  std::vector<std::string> warnings;
  const auto shared = folder.open({.on_warning = [&](std::string_view text) {
    warnings.emplace_back(text);
  }});
  const std::string page = page_of(*shared->registry());
  CHECK(sample(page, "c_total") == 1.0);
  CHECK(sample(page, "vllm_metrics_unreadable_segments") == 1.0);
  CHECK(warnings.size() == 1);
}

TEST_CASE(
    "SharedRegistry: a file of another format is wiped unless its owner may be "
    "alive",
    "[shm]") {
  const SharedFolder folder;
  leave_segment(folder);
  const std::string path = folder.segments().at(0);
  const std::uint32_t version = shm::SegmentHeader().version - 1;
  write_at(path, offsetof(shm::SegmentHeader, version), &version,
           sizeof version);
  bool stays = false;
  SECTION("which has ended") {}
  SECTION("in a pid namespace that is not seen from here") {
    const std::uint64_t elsewhere = 1;
    write_at(path, offsetof(shm::SegmentHeader, pid_namespace), &elsewhere,
             sizeof elsewhere);
    stays = true;
  }
  folder.open({.previous = SharedRegistryOptions::Previous::kWipe,
               .on_warning = [](auto) {}});
  CHECK(std::filesystem::exists(path) == stays);
}

TEST_CASE("SharedRegistry: a time that is none does not change the page",
          "[shm]") {
  const SharedFolder folder;
  leave_segment(folder);
  std::string path = folder.segments().at(0);
  SECTION("of a segment") {}
  SECTION("of the sums") {
    folder.open();
    path = folder.path() + "/vllm_metrics.folded";
  }
  using Limits = std::numeric_limits<double>;
  for (const double wrong :
       {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity(), -1.0}) {
    write_at(path, offsetof(shm::SegmentHeader, opened), &wrong, sizeof wrong);
    const auto looking = folder.open({.read_only = true});
    const auto schema = schema_of(*looking->registry());
    CHECK(schema->since == 0.0);
    CHECK(schema_of(*looking->registry()) == schema);
    CHECK(sample(page_of(*looking->registry()), "c_total") == 1.0);
  }
}

TEST_CASE("SharedRegistry: a child on no page says so if somebody listens",
          "[shm]") {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  SECTION("somebody does") {
    CHECK(fork_alone(ends[1]) == 0);
    std::string said(4096, '\0');
    const ssize_t size = ::read(ends[0], said.data(), said.size());
    said.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    CHECK(said.find("is on no page") != std::string::npos);
    CHECK(said.find("No such file or directory") != std::string::npos);
  }
  SECTION("nobody reads the pipe any more") {
    ::close(ends[0]);
    ends[0] = -1;
    CHECK(fork_alone(ends[1]) == 0);
  }
  SECTION("the pipe is full") {
    REQUIRE(::fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
    const std::string much(4096, 'x');
    while (::write(ends[1], much.data(), much.size()) > 0) {
    }
    REQUIRE(::fcntl(ends[1], F_SETFL, 0) == 0);
    CHECK(fork_alone(ends[1]) == 0);
  }
  for (const int end : ends) ::close(end);
}

TEST_CASE(
    "SharedRegistry: where a process of another format is alive nothing is "
    "wiped",
    "[shm]") {
  const SharedFolder folder;
  leave_segment(folder);
  int ready[2];
  int done[2];
  REQUIRE(::pipe(ready) == 0);
  REQUIRE(::pipe(done) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(done[1]);
    const auto shared = folder.open();
    const std::uint32_t version = shm::SegmentHeader().version + 1;
    write_at(folder.segments().at(0), offsetof(shm::SegmentHeader, version),
             &version, sizeof version);
    char byte = 0;
    if (::write(ready[1], "", 1) != 1 || ::read(done[0], &byte, 1) != 0)
      ::_exit(1);
    ::_exit(0);
  }
  ::close(done[0]);
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  const std::string own = folder.segments().at(0);
  const auto count_after_wipe = [&] {
    const auto shared =
        folder.open({.previous = SharedRegistryOptions::Previous::kWipe,
                     .on_warning = [](auto) {}});
    const std::string page = page_of(*shared->registry());
    return sample(page, "c_total");
  };
  CHECK(count_after_wipe() == 1.0);
  CHECK(std::filesystem::exists(own));
  ::close(done[1]);
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(std::isnan(count_after_wipe()));
  CHECK_FALSE(std::filesystem::exists(own));
  for (const int end : {ready[0], ready[1]}) ::close(end);
}
