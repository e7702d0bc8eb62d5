#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/http/client.h"
#include "vllm_metrics/http/exposer.h"
#include "vllm_metrics/registry/registry.h"

using vllm_metrics::Counter;
using vllm_metrics::Gauge;
using vllm_metrics::Handle;
using vllm_metrics::Histogram;
using vllm_metrics::Registry;
using vllm_metrics::http::Exposer;

namespace {

// The value behind `name` and a blank at the start of a line; -1 without one.
double sample(const std::string& page, const std::string& name) {
  const auto at = page.find("\n" + name + " ");
  return at == std::string::npos ? -1.0
                                 : std::stod(page.substr(at + name.size() + 2));
}

// Catch2's assertions are not for several threads: failures are counted.
class Scrapers {
 public:
  // Each scrapes `times`, every other one on a connection that it keeps.
  Scrapers(int port, int count, int times, auto check) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this, port, i, times, check] {
        Client kept(port);
        double last = 0.0;
        for (int n = 0; n < times; ++n) {
          const auto answer =
              i % 2 == 0 ? kept.get("/metrics") : get(port, "/metrics");
          if (answer.status != 200 || !check(answer.body, last)) ++failures_;
        }
      });
    }
  }

  int join() {
    for (auto& thread : threads_) thread.join();
    return failures_;
  }

 private:
  std::atomic<int> failures_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace

TEST_CASE("Exposer: concurrent scrapes each see a state that existed",
          "[http][concurrent]") {
  const auto registry = Registry::create();
  const std::array bounds{1.0, 2.0, 4.0};
  auto seconds =
      *registry->add_histogram({.name = "s", .help = "Seconds."}, bounds);
  const auto exposer = *Exposer::start(registry, {.port = 0});
  std::atomic<bool> done = false;
  std::vector<std::thread> engines;
  for (int i = 0; i < 2; ++i) {
    engines.emplace_back([&done, seconds] {
      while (!done.load(std::memory_order_relaxed)) seconds->observe(2.0);
    });
  }
  Scrapers scrapers(
      exposer->port(), 4, 50, [](const std::string& page, double& last) {
        const double count = sample(page, "s_count");
        const bool right = sample(page, "s_bucket{le=\"1.0\"}") == 0.0 &&
                           sample(page, "s_bucket{le=\"2.0\"}") == count &&
                           sample(page, "s_bucket{le=\"+Inf\"}") == count &&
                           sample(page, "s_sum") == 2.0 * count &&
                           count >= last;
        last = count;
        return right;
      });
  CHECK(scrapers.join() == 0);
  done = true;
  for (auto& engine : engines) engine.join();
}

TEST_CASE("Exposer: metrics come and go while the page is scraped",
          "[http][concurrent]") {
  const auto registry = Registry::create();
  const auto exposer = *Exposer::start(registry, {.port = 0});
  std::atomic<bool> done = false;
  std::vector<std::thread> engines;
  for (int i = 0; i < 2; ++i) {
    engines.emplace_back([&done, &registry, i] {
      const std::string name = "engine" + std::to_string(i);
      while (!done.load(std::memory_order_relaxed)) {
        auto tokens = *registry->add_counter({.name = name, .help = "T."});
        auto queue =
            *registry->add_gauge({.name = name + "_queue", .help = "Q."});
        tokens->inc(3);
        queue->set(1.0);
      }
    });
  }
  Scrapers scrapers(
      exposer->port(), 4, 50, [](const std::string& page, double&) {
        const double tokens = sample(page, "engine0_total");
        return (tokens == -1.0 || tokens == 0.0 || tokens == 3.0) &&
               sample(page, "process_cpu_seconds_total") > 0.0;
      });
  CHECK(scrapers.join() == 0);
  done = true;
  for (auto& engine : engines) engine.join();
}

TEST_CASE("Exposer: stop() from two threads while clients scrape",
          "[http][concurrent]") {
  const auto registry = Registry::create();
  for (int i = 0; i < 20; ++i) {
    const auto exposer = *Exposer::start(registry, {.port = 0});
    const int port = exposer->port();
    std::thread client([port] {
      Client kept(port);
      while (kept.get("/metrics").status == 200) {
      }
    });
    CHECK(get(port, "/metrics").status == 200);
    std::thread other([&exposer] { exposer->stop(); });
    exposer->stop();
    other.join();
    client.join();
    CHECK_FALSE(Client(port).connected());
  }
}
