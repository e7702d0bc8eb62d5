#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/http/client.h"
#include "vllm_metrics/http/exposer.h"
#include "vllm_metrics/registry/registry.h"

using std::chrono::hours;
using std::chrono::milliseconds;
using vllm_metrics::MetricKind;
using vllm_metrics::Registration;
using vllm_metrics::Registry;
using vllm_metrics::SchemaFamily;
using vllm_metrics::Series;
using vllm_metrics::SnapshotSource;
using vllm_metrics::http::Exposer;
using vllm_metrics::http::ExposerOptions;

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMemoryIsOurs = false;
#else
constexpr bool kMemoryIsOurs = true;
#endif

// An endpoint on a free port with nothing on its page.
std::unique_ptr<Exposer> serve(
    ExposerOptions options,
    std::shared_ptr<Registry> registry = Registry::create()) {
  options.port = 0;
  options.process_metrics = false;
  options.self_metrics = false;
  return *Exposer::start(std::move(registry), options);
}

// A page of some 8 MB, more than the socket buffers of both sides hold.
struct LargePage {
  LargePage() {
    struct Zeros : SnapshotSource {
      void read(std::span<std::uint64_t> words) const noexcept override {
        std::ranges::fill(words, 0);
      }
    };
    constexpr std::uint32_t kSeries = 8'000;
    SchemaFamily family{.family = {.name = "large", .help = "Large."},
                        .series = {}};
    for (std::uint32_t i = 0; i < kSeries; ++i) {
      family.series.push_back(
          {.labels = {{"id", std::to_string(i) + std::string(1000, 'x')}},
           .offset = i});
    }
    large = *registry->add({family}, std::make_shared<Zeros>(), kSeries);
  }
  std::shared_ptr<Registry> registry = Registry::create();
  Registration large;
};

const std::shared_ptr<Registry>& large_page() {
  static const LargePage page;  // takes a while to make
  return page.registry;
}

std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  file >> total >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// Sends `bytes` one at a time, 5 ms apart, until the server has had enough.
bool trickle_until_cut(Client& client, std::string_view bytes) {
  for (const char byte : bytes) {
    if (client.cut_within(5) || !client.send({&byte, 1})) return true;
  }
  return false;
}

const std::string kEndlessRequest =
    "GET /metrics HTTP/1.1\r\nHost: test\r\nX: " + std::string(4000, 'x');

}  // namespace

TEST_CASE("Exposer: a request that trickles in is cut off at its deadline",
          "[http]") {
  const auto exposer = serve(
      {.request_timeout = milliseconds(100), .keep_alive_timeout = hours(1)});
  Client client(exposer->port());
  SECTION("the first of a connection") {}
  SECTION("a later one") { CHECK(client.get("/metrics").status == 200); }
  SECTION("one with a body") {
    client.send(
        "POST /metrics HTTP/1.1\r\nHost: test\r\n"
        "Content-Length: 100000\r\n\r\n");
  }
  CHECK(trickle_until_cut(client, kEndlessRequest));
  CHECK(get(exposer->port(), "/metrics").status == 200);
}

TEST_CASE("Exposer: who connects and asks nothing is cut off", "[http]") {
  const auto exposer = serve(
      {.request_timeout = milliseconds(50), .keep_alive_timeout = hours(1)});
  Client client(exposer->port());
  CHECK(client.cut_within(20'000));
}

TEST_CASE("Exposer: a connection may wait for its next request as configured",
          "[http]") {
  const auto exposer = serve(
      {.request_timeout = hours(1), .keep_alive_timeout = milliseconds(50)});
  Client client(exposer->port());
  CHECK(client.get("/metrics").status == 200);
  CHECK(client.cut_within(20'000));
  CHECK(client.read_to_end().empty());  // an end, no reset
}

TEST_CASE("Exposer: an answer that is not fetched is dropped at its deadline",
          "[http]") {
  const auto exposer =
      serve({.request_timeout = milliseconds(300)}, large_page());
  Client slow(exposer->port(), /*receive_buffer=*/4096);
  slow.send("GET /metrics HTTP/1.1\r\nHost: test\r\n\r\n");
  CHECK(slow.cut_within(20'000));
  CHECK(slow.read_answer().status == 0);  // not whole
}

TEST_CASE("Exposer: idle connections do not keep a scraper out", "[http]") {
  const auto exposer = serve({.max_connections = 2,
                              .request_timeout = hours(1),
                              .keep_alive_timeout = hours(1)});
  std::vector<std::unique_ptr<Client>> idle;
  for (int i = 0; i < 50; ++i) {
    idle.push_back(std::make_unique<Client>(exposer->port()));
    if (i % 3 == 1) idle.back()->send("GET /metr");
    if (i % 3 == 2) CHECK(idle.back()->get("/metrics").status == 200);
  }
  Client scraper(exposer->port());
  CHECK(scraper.get("/metrics").status == 200);
  CHECK(scraper.get("/metrics").status == 200);
  for (int i = 0; i < 48; ++i) {
    CAPTURE(i);
    CHECK(idle[static_cast<std::size_t>(i)]->cut_within(20'000));
  }
}

TEST_CASE("Exposer: slow readers do not keep a scraper out", "[http]") {
  const auto exposer =
      serve({.max_connections = 1, .request_timeout = hours(1)}, large_page());
  std::vector<std::unique_ptr<Client>> slow;
  for (int i = 0; i < 20; ++i) {  // more than the limit and its reserve
    slow.push_back(std::make_unique<Client>(exposer->port(), 4096));
    slow.back()->send("GET /metrics HTTP/1.1\r\nHost: test\r\n\r\n");
  }
  CHECK(get(exposer->port(), "/").status == 404);
}

TEST_CASE("Exposer: more scrapers at once than connections all get the page",
          "[http]") {
  const auto exposer = serve({.max_connections = 2});
  std::vector<std::unique_ptr<Client>> scrapers;
  for (int i = 0; i < 40; ++i) {
    scrapers.push_back(std::make_unique<Client>(exposer->port()));
    scrapers.back()->send("GET /metrics HTTP/1.1\r\nHost: test\r\n\r\n");
  }
  for (const auto& scraper : scrapers) {
    CHECK(scraper->read_answer().status == 200);
  }
}

// A scanner's paths became label values in another server: a series for each.
TEST_CASE("Exposer: 10,000 random paths leave no trace", "[http]") {
  const auto registry = Registry::create();
  const auto tokens =
      *registry->add_counter({.name = "tokens", .help = "Tokens."});
  const auto exposer = serve({}, registry);
  std::mt19937 random(7);
  auto client = std::make_optional<Client>(exposer->port());
  const auto scan = [&](int requests) {
    int not_found = 0;
    for (int i = 0; i < requests; ++i) {
      if (i % 10 == 0) client.emplace(exposer->port());
      const auto path = "/" + std::to_string(random()) +
                        "?metrics=" + std::to_string(random());
      const auto header = "X-" + std::to_string(random()) + ": 1\r\n";
      if (client->get(path, header).status == 404) ++not_found;
    }
    return not_found;
  };
  const auto page = client->get("/metrics").body;
  CHECK(scan(500) == 500);  // warm: what is allocated once is there
  const auto before = resident_bytes();
  CHECK(scan(9'500) == 9'500);
  const auto after = resident_bytes();
  if (kMemoryIsOurs) CHECK(after < before + (1 << 20));
  CHECK(client->get("/metrics").body == page);
}

TEST_CASE("Exposer: a request larger than its memory is refused", "[http]") {
  const auto exposer = serve({.connection_memory_bytes = 4096});
  CHECK(
      get(exposer->port(), "/metrics", "X: " + std::string(9000, 'x') + "\r\n")
          .status == 431);
  CHECK(get(exposer->port(), "/" + std::string(9000, 'x')).status == 414);
  CHECK(get(exposer->port(), "/metrics").status == 200);
}

TEST_CASE("Exposer: what is no HTTP is refused and harms nobody", "[http]") {
  const auto exposer = serve({.request_timeout = milliseconds(200)});
  const std::string garbage = GENERATE(
      std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11),
      std::string(300, '\0'), "\r\n\r\n\r\n", "GET\r\n\r\n",
      "GET /metrics HTTP/9.9\r\n\r\n",
      "GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
      "GET /metrics HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
      "\r\nFFFFFFFFFFFFFFFFFFFF\r\n");
  CAPTURE(garbage);
  Client client(exposer->port());
  client.send(garbage);
  CHECK(client.read_to_end().find("200 OK") == std::string::npos);
  CHECK(get(exposer->port(), "/metrics").status == 200);
}

// Writing to a connection that is gone raises SIGPIPE, which by default ends
// the process.
TEST_CASE("Exposer: a client that leaves during its answer harms nobody",
          "[http]") {
  const auto exposer = serve({}, large_page());
  for (int i = 0; i < 5; ++i) {
    Client client(exposer->port());
    client.send("GET /metrics HTTP/1.1\r\nHost: test\r\n\r\n");
    char first = 0;
    CHECK(recv(client.fd(), &first, 1, 0) == 1);  // the answer has begun
    const linger reset{.l_onoff = 1, .l_linger = 0};
    setsockopt(client.fd(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  }
  CHECK(get(exposer->port(), "/").status == 404);
}

TEST_CASE("Exposer: stop() does not wait for a client", "[http]") {
  const auto exposer =
      serve({.request_timeout = hours(1), .keep_alive_timeout = hours(1)},
            large_page());
  Client silent(exposer->port());
  Client halfway(exposer->port());
  halfway.send("GET /metrics HT");
  Client reading(exposer->port(), 4096);
  reading.send("GET /metrics HTTP/1.1\r\nHost: test\r\n\r\n");
  CHECK(get(exposer->port(), "/").status == 404);  // all have been accepted
  exposer->stop();
  CHECK(silent.cut_within(20'000));
  CHECK(halfway.cut_within(20'000));
  CHECK(reading.cut_within(20'000));
}

TEST_CASE("Exposer: out of file descriptors, a scraper waits till one is free",
          "[http]") {
  const auto exposer = serve({.request_timeout = hours(1)});
  std::optional<Client> kept;
  if (GENERATE(false, true)) {
    kept.emplace(exposer->port());
    CHECK(kept->get("/metrics").status == 200);
  }
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const int lowest_free = open("/dev/null", O_RDONLY);
  close(lowest_free);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(lowest_free) + 1;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  Client late(exposer->port());  // takes the last one
  late.send("GET /metrics HTTP/1.1\r\nHost: test\r\n\r\n");
  if (kept) CHECK(kept->get("/metrics").status == 200);
  CHECK_FALSE(late.cut_within(10));
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(late.read_answer().status == 200);
}

TEST_CASE("Exposer: its thread takes none of the engine's signals", "[http]") {
  const auto exposer = serve({});
  CHECK(get(exposer->port(), "/metrics").status == 200);  // it is running
  std::uint64_t blocked = 0;
  DIR* const tasks = opendir("/proc/self/task");
  while (const dirent* const task = readdir(tasks)) {
    std::ifstream status(std::string("/proc/self/task/") + task->d_name +
                         "/status");
    bool ours = false;
    for (std::string key, value; status >> key >> value;) {
      if (key == "Name:") ours = value == "vllm_metrics";
      if (key == "SigBlk:" && ours) blocked = std::stoull(value, nullptr, 16);
      status.ignore(1000, '\n');
    }
  }
  closedir(tasks);
  const auto is_blocked = [&](int signal) {
    return (blocked >> (signal - 1) & 1) != 0;
  };
  CHECK(is_blocked(SIGTERM));
  CHECK(is_blocked(SIGINT));
  CHECK(is_blocked(SIGCHLD));
  CHECK(is_blocked(SIGPIPE));
  CHECK_FALSE(is_blocked(SIGSEGV));  // a crash handler has to run
}

TEST_CASE("Exposer: a forked child neither serves nor harms its parent",
          "[http]") {
  auto registry = Registry::create();
  auto exposer = *Exposer::start(registry, {.port = 0});
  const int port = exposer->port();
  Client client(port);
  CHECK(client.get("/metrics").status == 200);
  std::array<int, 2> parent_gone{};
  REQUIRE(pipe(parent_gone.data()) == 0);
  const bool child_destroys = GENERATE(true, false);
  const pid_t child = fork();
  if (child == 0) {
    close(parent_gone[1]);
    if (child_destroys) exposer.reset();
    char byte = 0;
    const auto end = read(parent_gone[0], &byte, 1);
    _exit(end == 0 ? 0 : 1);
  }
  close(parent_gone[0]);
  CHECK(client.get("/metrics").status == 200);
  CHECK(get(port, "/metrics").status == 200);
  exposer->stop();
  // The child still has its copies of our sockets.
  CHECK(client.read_to_end().empty());
  CHECK(Exposer::start(registry, {.port = port}).ok());
  close(parent_gone[1]);
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}
