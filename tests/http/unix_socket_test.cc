#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "src/registry/unique_fd.h"
#include "tests/http/client.h"
#include "vllm_metrics/http/exposer.h"
#include "vllm_metrics/registry/registry.h"

using Catch::Matchers::Contains;
using vllm_metrics::Registry;
using vllm_metrics::UniqueFd;
using vllm_metrics::http::Exposer;
using vllm_metrics::http::ExposerOptions;

namespace {

// A folder of its own, and the path of a socket in it.
struct Folder {
  Folder() { REQUIRE(mkdtemp(name.data()) != nullptr); }
  ~Folder() { std::filesystem::remove_all(name); }

  std::string path() const { return name + "/engine.sock"; }
  std::string address() const { return "unix:" + path(); }

  std::string name =
      (std::filesystem::temp_directory_path() / "vllm_metrics.XXXXXX").string();
};

absl::StatusOr<std::unique_ptr<Exposer>> serve(const std::string& address,
                                               ExposerOptions options = {}) {
  options.address = address;
  options.process_metrics = false;
  auto registry = Registry::create();
  return Exposer::start(std::move(registry), std::move(options));
}

mode_t permissions(const std::string& path) {
  struct stat file {};
  REQUIRE(lstat(path.c_str(), &file) == 0);
  REQUIRE(S_ISSOCK(file.st_mode));
  return file.st_mode & 07777;
}

// The file that a process leaves which is killed while it listens.
void leave_dead_socket(const std::string& path) {
  const UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  path.copy(name.sun_path, sizeof name.sun_path - 1);
  REQUIRE(bind(fd.value(), reinterpret_cast<const sockaddr*>(&name),
               sizeof name) == 0);
  REQUIRE(listen(fd.value(), 1) == 0);
}

}  // namespace

TEST_CASE("Unix socket: clients who may open the file are answered", "[http]") {
  const Folder folder;
  const auto exposer = *serve(folder.address());
  CHECK(permissions(folder.path()) == 0600);
  CHECK(exposer->port() == 0);
  CHECK(exposer->url() == "http://unix:" + folder.path() + ":/metrics");
  Client client(folder.path());
  CHECK(client.get("/metrics").status == 200);
  CHECK(client.get("/other").status == 404);
  CHECK(client.get("/metrics").status == 200);
}

TEST_CASE("Unix socket: the permissions are those asked for, not the umask's",
          "[http]") {
  const Folder folder;
  const mode_t before = umask(0077);
  const int wanted = GENERATE(0, 0600, 0660, 0666);
  const auto exposer = serve(folder.address(), {.unix_permissions = wanted});
  umask(before);
  REQUIRE(exposer.ok());
  CHECK(permissions(folder.path()) == static_cast<mode_t>(wanted));
}

TEST_CASE("Unix socket: the file is gone when the endpoint stops", "[http]") {
  const Folder folder;
  const auto exposer = *serve(folder.address());
  exposer->stop();
  CHECK_FALSE(std::filesystem::exists(folder.path()));
  CHECK_FALSE(Client(folder.path()).connected());
  const auto next = *serve(folder.address());
  exposer->stop();  // again: not the next one's
  CHECK(Client(folder.path()).get("/metrics").status == 200);
}

TEST_CASE("Unix socket: a file that took the path's place is left alone",
          "[http]") {
  const Folder folder;
  auto first = *serve(folder.address());
  std::filesystem::remove(folder.path());
  const auto second = *serve(folder.address());
  first.reset();
  CHECK(Client(folder.path()).get("/metrics").status == 200);
}

TEST_CASE("Unix socket: the file of a dead process is replaced", "[http]") {
  const Folder folder;
  leave_dead_socket(folder.path());
  const auto exposer = serve(folder.address());
  REQUIRE(exposer.ok());
  CHECK(Client(folder.path()).get("/metrics").status == 200);
}

TEST_CASE("Unix socket: what is not ours to replace is an error that says so",
          "[http]") {
  const Folder folder;
  std::optional<std::unique_ptr<Exposer>> other;
  std::string reason;
  SECTION("a socket that another endpoint listens on") {
    other = *serve(folder.address());
    reason = "bind: Address already in use";
  }
  SECTION("a file") {
    std::ofstream(folder.path()) << "precious";
    reason = "a file is there that is no socket";
  }
  SECTION("a link to nowhere") {
    std::filesystem::create_symlink("nowhere", folder.path());
    reason = "a file is there that is no socket";
  }
  const auto refused = serve(folder.address());
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.status().message() == folder.address() + ": " + reason);
  CHECK(std::filesystem::is_symlink(folder.path()) +
            std::filesystem::exists(folder.path()) ==
        1);
  if (other) CHECK(Client(folder.path()).get("/metrics").status == 200);
}

TEST_CASE("Unix socket: a path that cannot be is an error that names it",
          "[http]") {
  const auto [address, reason] = GENERATE(table<std::string, std::string>({
      {"unix:", "is not unix: and an absolute path"},
      {"unix:relative", "is not unix: and an absolute path"},
      {std::string("unix:/tmp/a\0b", 13), "is not unix: and an absolute path"},
      {"unix:/" + std::string(120, 'x'),
       "the path has 121 bytes; allowed: up to 107"},
      {"unix:/nowhere/at/all", "bind: No such file or directory"},
  }));
  const auto refused = serve(address);
  REQUIRE_FALSE(refused.ok());
  CHECK_THAT(std::string(refused.status().message()), Contains(address));
  CHECK_THAT(std::string(refused.status().message()), Contains(reason));
}

TEST_CASE("Unix socket: a later request that trickles in has its deadline",
          "[http]") {
  using std::chrono::hours;
  const Folder folder;
  const auto exposer = *serve(
      folder.address(), {.request_timeout = std::chrono::milliseconds(100),
                         .keep_alive_timeout = hours(1)});
  Client client(folder.path());
  CHECK(client.get("/metrics").status == 200);
  const std::string endless =
      "GET /metrics HTTP/1.1\r\n" + std::string(4000, 'x');
  bool cut = false;
  for (const char byte : endless) {
    cut = client.cut_within(5) || !client.send({&byte, 1});
    if (cut) break;
  }
  CHECK(cut);
}

TEST_CASE("Unix socket: a forked child does not remove the file", "[http]") {
  const Folder folder;
  auto exposer = *serve(folder.address());
  const bool child_destroys = GENERATE(true, false);
  const pid_t child = fork();
  if (child == 0) {
    if (child_destroys) exposer.reset();
    _exit(0);
  }
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(Client(folder.path()).get("/metrics").status == 200);
}
