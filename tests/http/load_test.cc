#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/http/client.h"
#include "vllm_metrics/http/exposer.h"
#include "vllm_metrics/loggers/options.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"
#include "vllm_metrics/stats/iteration_stats.h"
#include "vllm_metrics/stats/scheduler_stats.h"

using std::chrono::hours;
using vllm_metrics::IterationStats;
using vllm_metrics::SchedulerStats;
using vllm_metrics::StatLoggerManager;
using vllm_metrics::StatLoggerOptions;
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

double sample(const std::string& page, const std::string& series) {
  const auto at = page.find("\n" + series + " ");
  return at == std::string::npos
             ? -1.0
             : std::strtod(page.c_str() + at + series.size() + 2, nullptr);
}

// What each step has of it; sums of these numbers are exact.
struct Step {
  Step() {
    iteration.num_generation_tokens = 10;
    iteration.time_to_first_tokens_iter = {2.0, 2.0};
    iteration.inter_token_latencies_iter.assign(8, 0.0625);
  }

  // How many of them the page knows of; -1 if it has a part of one.
  static double count_on(const std::string& page) {
    const auto value = [&page](const std::string& name, const char* le = "") {
      return sample(
          page, "vllm:" + name + "{engine=\"0\"," + le + "model_name=\"m\"}");
    };
    const double steps = value("iteration_tokens_total_count");
    const std::string first = "time_to_first_token_seconds_";
    const std::string next = "inter_token_latency_seconds_";
    const bool is_whole =
        value("generation_tokens_total") == 10.0 * steps &&
        value(first + "bucket", "le=\"1.0\",") == 0.0 &&
        value(first + "bucket", "le=\"2.5\",") == 2.0 * steps &&
        value(first + "count") == 2.0 * steps &&
        value(first + "sum") == 4.0 * steps &&
        value(next + "count") == 8.0 * steps &&
        value(next + "sum") == 0.5 * steps &&
        value("num_requests_running") == (steps > 0.0 ? 8.0 : 0.0);
    return is_whole ? steps : -1.0;
  }

  SchedulerStats scheduler = {.num_running_reqs = 8};
  IterationStats iteration;
};

std::vector<std::unique_ptr<Client>> connect(int port, int count) {
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < count; ++i) {
    clients.push_back(std::make_unique<Client>(port));
  }
  return clients;
}

// Records a step for each request that is sent, on a thread of its own.
class Engine {
 public:
  explicit Engine(StatLoggerManager& manager)
      : thread_([this, &manager] { run(manager); }) {}
  ~Engine() { stop(); }

  void wake() {
    wanted_.fetch_add(1);
    wanted_.notify_one();
  }
  void stop() {
    if (!thread_.joinable()) return;
    wanted_.fetch_or(kStopped);
    wanted_.notify_one();
    thread_.join();
  }

 private:
  static constexpr unsigned kStopped = 1U << 31;

  void run(StatLoggerManager& manager) {
    const Step step;
    for (unsigned done = 0;;) {
      wanted_.wait(done);
      const unsigned wanted = wanted_;
      for (; done != (wanted & ~kStopped); ++done)
        manager.record(&step.scheduler, &step.iteration);
      if ((wanted & kStopped) != 0) return;
    }
  }

  std::atomic<unsigned> wanted_ = 0;
  std::thread thread_;
};

// One scrape by each client, all at the same time; how many were answered with
// a page that is right and not older than the last.
int scrape(std::vector<std::unique_ptr<Client>>& clients, Engine& engine,
           double& last) {
  for (const auto& client : clients) {
    client->send("GET /metrics HTTP/1.1\r\nHost: test\r\n\r\n");
    engine.wake();
  }
  int right = 0;
  double newest = last;
  for (const auto& client : clients) {
    const auto answer = client->read_answer();
    const double steps = Step::count_on(answer.body);
    if (answer.status == 200 && steps >= last) ++right;
    newest = std::max(newest, steps);
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
  StatLoggerOptions options;
  options.model_name = "m";
  options.max_model_len = 8192;
  options.default_loggers = false;
  const auto manager = *StatLoggerManager::create(options);
  const auto exposer = *Exposer::start(
      manager->registry(), {.port = 0,
                            .max_connections = kScrapers + 2 * kHostile,
                            .request_timeout = hours(1)});
  const int port = exposer->port();
  Engine engine(*manager);
  const auto silent = connect(port, kHostile);
  const auto trickling = connect(port, kHostile);
  for (const auto& client : trickling) {
    client->send("GET /metrics HTTP/1.1\r\nX: ");
  }
  auto scrapers = connect(port, kScrapers);

  double last = 0.0;
  int right = scrape(scrapers, engine, last);
  const auto before = resident_bytes();
  for (int i = 1; i < kScrapes; ++i) {
    for (const auto& client : trickling) client->send("x");
    right += scrape(scrapers, engine, last);
  }
  const auto after = resident_bytes();
  engine.stop();

  CHECK(right == kScrapers * kScrapes);
  if (kMemoryIsOurs) CHECK(after < before + (std::size_t{2} << 20));
  const auto page = scrapers[0]->get("/metrics").body;
  CHECK(Step::count_on(page) == kScrapers * kScrapes);
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
