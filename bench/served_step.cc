#include "served_step.h"

#include <cstddef>
#include <deque>

#include "connection.h"
#include "engines.h"
#include "vllm_metrics/http/exposer.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"

namespace vllm_metrics::bench {
namespace {

// Everybody who wants something of the endpoint.
class Crowd {
 public:
  explicit Crowd(int port) {
    for (int i = 0; i < 200; ++i) scrapers_.emplace_back(port);
    for (int i = 0; i < 50; ++i) tricklers_.emplace_back(port);
    for (int i = 0; i < 50; ++i) silent_.emplace_back(port);
  }

  // The next of the scrapers; after some of them a byte of a trickler.
  void scrape() {
    scrapers_[turn_ % scrapers_.size()].get("/metrics");
    if (turn_ % 20 == 0) tricklers_[turn_ / 20 % tricklers_.size()].send("G");
    ++turn_;
  }

 private:
  std::deque<Connection> scrapers_;
  std::deque<Connection> tricklers_;
  std::deque<Connection> silent_;
  std::size_t turn_ = 0;
};

}  // namespace

ScrapedStep time_served_step(std::size_t count) {
  const auto manager = make_manager(prometheus_only(1));
  auto exposer = http::Exposer::start(manager->registry(),
                                      {.port = 0, .max_connections = 400});
  if (!exposer.ok()) give_up(exposer.status().ToString().c_str());
  Crowd crowd((*exposer)->port());
  return time_disturbed_step(*manager, count, [&crowd] { crowd.scrape(); });
}

}  // namespace vllm_metrics::bench
