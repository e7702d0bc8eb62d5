// The folder that a shared registry makes when it is told none.

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "tests/shm/shared_folder.h"

namespace {

using namespace vllm_metrics;  // NOLINT
using shm::SharedRegistry;

// Where fresh folders are made while it lives.
class RuntimeFolder {
 public:
  RuntimeFolder() {
    ::unsetenv("PROMETHEUS_MULTIPROC_DIR");
    ::setenv("XDG_RUNTIME_DIR", place_.path().c_str(), 1);
  }
  ~RuntimeFolder() { ::unsetenv("XDG_RUNTIME_DIR"); }
  RuntimeFolder(const RuntimeFolder&) = delete;
  RuntimeFolder& operator=(const RuntimeFolder&) = delete;

  std::size_t count() const {
    std::size_t n = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator(place_.path())) {
      static_cast<void>(entry);
      ++n;
    }
    return n;
  }

 private:
  SharedFolder place_;
};

std::unique_ptr<SharedRegistry> open(shm::SharedRegistryOptions options = {}) {
  auto made = SharedRegistry::create(std::move(options));
  INFO(made.status());
  REQUIRE(made.ok());
  return *std::move(made);
}

void count_one(SharedRegistry& shared) {
  const auto counter =
      shared.registry()->add_counter({.name = "c", .help = "A counter."});
  REQUIRE(counter.ok());
  (*counter)->inc();
}

double count_on(const SharedRegistry& shared) {
  return sample(page_of(*shared.registry()), "c_total");
}

}  // namespace

TEST_CASE("SharedRegistry: a fresh folder goes with the last who uses it",
          "[shm]") {
  const RuntimeFolder runtime;
  auto first = open();
  const std::string path = first->folder();
  REQUIRE(runtime.count() == 1);
  auto second = open({.folder = path});
  count_one(*first);
  SECTION("whoever made it") {
    const std::shared_ptr<Registry> kept = first->registry();
    first.reset();
    CHECK(count_on(*second) == 1.0);
    second.reset();
    CHECK(std::filesystem::exists(path));
    CHECK(sample(page_of(*kept), "c_total") == 1.0);
  }
  SECTION("also when that only looks: then with the next one made") {
    auto looking = open({.folder = path, .read_only = true});
    first.reset();
    second.reset();
    CHECK(count_on(*looking) == 1.0);
    looking.reset();
    CHECK(std::filesystem::exists(path));
    open();
  }
  SECTION("but for files of others") {
    std::ofstream(path + "/counter_1.db") << "theirs";
    first.reset();
    second.reset();
    CHECK(std::filesystem::exists(path + "/counter_1.db"));
    CHECK(std::distance(std::filesystem::directory_iterator(path), {}) == 1);
    std::filesystem::remove_all(path);
  }
  first.reset();
  second.reset();
  CHECK(runtime.count() == 0);
}

TEST_CASE("SharedRegistry: a forked child keeps its parent's fresh folder",
          "[shm]") {
  const RuntimeFolder runtime;
  auto parent = open();
  const std::string path = parent->folder();
  int parent_has_left[2];
  REQUIRE(::pipe(parent_has_left) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    if (::read(parent_has_left[0], &byte, 1) != 1) ::_exit(2);
    count_one(*parent);
    const bool is_there =
        count_on(*parent) == 1.0 && std::filesystem::exists(path);
    parent.reset();
    ::_exit(is_there && !std::filesystem::exists(path) ? 0 : 1);
  }
  parent.reset();
  CHECK(std::filesystem::exists(path));
  REQUIRE(::write(parent_has_left[1], "", 1) == 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(runtime.count() == 0);
  ::close(parent_has_left[0]);
  ::close(parent_has_left[1]);
}

TEST_CASE(
    "SharedRegistry: the fresh folder of a process that was killed goes when "
    "the next is made",
    "[shm]") {
  const RuntimeFolder runtime;
  in_child([] {
    const auto killed = open();
    ::kill(::getpid(), SIGKILL);
  });
  CHECK(runtime.count() == 1);
  const auto alive = open();
  CHECK(runtime.count() == 1);
  const auto another = open();
  CHECK(runtime.count() == 2);
  CHECK(std::filesystem::exists(alive->folder()));
}

TEST_CASE("SharedRegistry: a folder that was asked for stays", "[shm]") {
  const SharedFolder folder;
  const std::string path = folder.path() + "/asked";
  const auto made = [&] {
    auto shared = open({.folder = path});
    count_one(*shared);
    return count_on(*shared);
  };
  CHECK(made() == 1.0);
  CHECK(made() == 2.0);
}

TEST_CASE("SharedRegistry: a process may leave the folder its path began in",
          "[shm]") {
  const SharedFolder folder;
  const int status = in_child([&] {
    if (::chdir(folder.path().c_str()) != 0) ::_exit(2);
    const auto shared = open({.folder = "relative"});
    if (shared->folder() != folder.path() + "/relative") ::_exit(3);
    if (::chdir("/") != 0) ::_exit(4);
    in_child([&] { count_one(*shared); });
    count_one(*shared);
    ::_exit(count_on(*shared) == 2.0 ? 0 : 1);
  });
  CHECK(status == 0);
}

TEST_CASE("SharedRegistry: a path that cannot be is an error", "[shm]") {
  for (const std::string& path :
       {std::string(5000, 'x'), "/dev/shm/" + std::string(300, 'x'),
        std::string("/dev/null/x"), std::string("\n/\xFF")}) {
    const auto made = SharedRegistry::create({.folder = path});
    CHECK_FALSE(made.ok());
    CHECK(made.status().message().find(path) != std::string::npos);
  }
}
