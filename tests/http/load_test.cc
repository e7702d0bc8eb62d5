#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/http/client.h"
#include "vllm_metrics/http/exposer.h"
#include "vllm_metrics/registry/registry.h"

using std::chrono::hours;
using vllm_metrics::Registry;
using vllm_metrics::http::Exposer;

namespace {

// Sanitizers keep memory, and take their time.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMemoryIsOurs = false;
constexpr int kScrapes = 20;
#else
constexpr bool kMemoryIsOurs = true;
constexpr int kScrapes = 200;
#endif
constexpr int kScrapers = 200;
constexpr int kHostile = 50;  // of each kind

std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  file >> total >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

double sample(const std::string& page, const std::string& name) {
  const auto at = page.find("\n" + name + " ");
  return at == std::string::npos ? -1.0
                                 : std::stod(page.substr(at + name.size() + 2));
}

std::vector<std::unique_ptr<Client>> connect(int port, int count) {
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < count; ++i) {
    clients.push_back(std::make_unique<Client>(port));
  }
  return clients;
}

// One scrape by each client, all at the same time; how many were answered with
// a page that is right and not older than the last.
int scrape(std::vector<std::unique_ptr<Client>>& clients, double& last) {
  for (const auto& client : clients) {
    client->send("GET /metrics HTTP/1.1\r\nHost: test\r\n\r\n");
  }
  int right = 0;
  double newest = last;
  for (const auto& client : clients) {
    const auto answer = client->read_answer();
    const double count = sample(answer.body, "s_count");
    if (answer.status == 200 && count >= last &&
        sample(answer.body, "s_bucket{le=\"1.0\"}") == 0.0 &&
        sample(answer.body, "s_bucket{le=\"2.0\"}") == count &&
        sample(answer.body, "s_sum") == 2.0 * count) {
      ++right;
    }
    newest = std::max(newest, count);
  }
  last = newest;
  return right;
}

}  // namespace

TEST_CASE(
    "Exposer: 200 scrapers among 50 who trickle and 50 who are silent all get "
    "every page while an engine records, and no memory stays",
    "[http][concurrent]") {
  rlimit files{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &files) == 0);
  if (files.rlim_cur < 800) {
    WARN("only " << files.rlim_cur << " files may be open here");
    return;
  }
  const auto registry = Registry::create();
  const std::array bounds{1.0, 2.0};
  auto seconds =
      *registry->add_histogram({.name = "s", .help = "Seconds."}, bounds);
  const auto exposer =
      *Exposer::start(registry, {.port = 0,
                                 .max_connections = kScrapers + 2 * kHostile,
                                 .request_timeout = hours(1)});
  const int port = exposer->port();
  std::atomic<bool> done = false;
  std::thread engine([&] {
    while (!done.load(std::memory_order_relaxed)) {
      seconds->observe(2.0);
      std::this_thread::yield();
    }
  });
  const auto silent = connect(port, kHostile);
  const auto trickling = connect(port, kHostile);
  for (const auto& client : trickling) {
    client->send("GET /metrics HTTP/1.1\r\nX: ");
  }
  auto scrapers = connect(port, kScrapers);

  double last = 0.0;
  int right = scrape(scrapers, last);
  const auto before = resident_bytes();
  for (int i = 1; i < kScrapes; ++i) {
    for (const auto& client : trickling) client->send("x");
    right += scrape(scrapers, last);
  }
  const auto after = resident_bytes();
  done = true;
  engine.join();

  CHECK(right == kScrapers * kScrapes);
  if (kMemoryIsOurs) CHECK(after < before + (std::size_t{2} << 20));
  const auto page = scrapers[0]->get("/metrics").body;
  const std::string address =
      "{address=\"127.0.0.1:" + std::to_string(port) + "\"";
  CHECK(sample(page, "vllm_metrics_http_connections" + address + "}") ==
        kScrapers + 2 * kHostile);
  CHECK(sample(page, "vllm_metrics_http_requests_total" + address +
                         ",code=\"200\"}") == kScrapers * kScrapes);
  exposer->stop();  // with all of them connected
  CHECK(silent[0]->read_to_end().empty());
  CHECK_FALSE(Client(port).connected());
}
