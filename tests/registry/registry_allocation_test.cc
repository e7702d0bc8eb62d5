// Allocations, counted: what a scrape costs when nothing changes, and how
// registration grows with the page.

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/allocation_count.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics {
namespace {

TEST_CASE("Registry: a scrape of an unchanged page allocates nothing",
          "[registry]") {
  const auto registry = Registry::create();
  std::vector<Handle<Counter>> counters;
  std::vector<Handle<Histogram>> histograms;
  for (int engine = 0; engine < 8; ++engine) {
    const Labels labels{{"engine", std::to_string(engine)}};
    counters.push_back(*registry->add_counter({.name = "c"}, labels));
    histograms.push_back(*registry->add_histogram(
        {.name = "h"}, std::vector<double>{1, 2, 5}, labels));
  }
  Snapshot snapshot;
  registry->snapshot(snapshot);
  CHECK(allocations_of([&] {
          for (int scrape = 0; scrape < 10; ++scrape) {
            counters[0]->inc();
            histograms[0]->observe(3.0);
            registry->snapshot(snapshot);
          }
        }) == 0);
}

// Each family was compared with every family of every registration: 512 engines
// that registered one after the other took a minute.
TEST_CASE(
    "Registry: registering, scraping and removing cost the same for each "
    "engine, however many there are",
    "[registry]") {
  const auto cost_of = [](int engines) {
    const auto registry = Registry::create();
    return static_cast<double>(allocations_of([&] {
             std::vector<Handle<Gauge>> handles;
             const auto add = [&](Family family, Labels labels) {
               handles.push_back(*registry->add_gauge(family, labels));
             };
             for (int engine = 0; engine < engines; ++engine) {
               const Labels labels{{"engine", std::to_string(engine)}};
               for (int family = 0; family < 20; ++family) {
                 add({.name = "f" + std::to_string(family)}, labels);
               }
               add({.name = "info", .info = true}, labels);
             }
             Snapshot snapshot;
             registry->snapshot(snapshot);
           })) /
           engines;
  };
  const double few = cost_of(64);
  const double many = cost_of(512);
  CAPTURE(few, many);
  CHECK(many < 1.1 * few);
}

}  // namespace
}  // namespace vllm_metrics
