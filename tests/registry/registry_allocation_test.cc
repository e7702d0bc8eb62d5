// Allocations, counted: what a scrape costs when nothing changes, and how
// registration grows with the page.

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "vllm_metrics/registry/registry.h"

namespace {
std::atomic<std::size_t> allocations{0};

void* counted(std::size_t size, std::size_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  const std::size_t whole = (size + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, whole == 0 ? alignment : whole);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
}  // namespace

void* operator new(std::size_t size) {
  return counted(size, alignof(std::max_align_t));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return counted(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

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
  const std::size_t before = allocations.load();
  for (int scrape = 0; scrape < 10; ++scrape) {
    counters[0]->inc();
    histograms[0]->observe(3.0);
    registry->snapshot(snapshot);
  }
  CHECK(allocations.load() == before);
  CHECK(before > 0);
}

// Each family was compared with every family of every registration: 512 engines
// that registered one after the other took a minute.
TEST_CASE(
    "Registry: registering, scraping and removing cost the same for each "
    "engine, however many there are",
    "[registry]") {
  const auto cost_of = [](int engines) {
    const auto registry = Registry::create();
    const std::size_t before = allocations.load();
    {
      std::vector<Handle<Gauge>> handles;
      for (int engine = 0; engine < engines; ++engine) {
        for (int family = 0; family < 20; ++family) {
          handles.push_back(
              *registry->add_gauge({.name = "f" + std::to_string(family)},
                                   {{"engine", std::to_string(engine)}}));
        }
        handles.push_back(*registry->add_gauge(
            {.name = "info", .info = true}, {{"e", std::to_string(engine)}}));
      }
      Snapshot snapshot;
      registry->snapshot(snapshot);
    }
    return static_cast<double>(allocations.load() - before) / engines;
  };
  const double few = cost_of(64);
  const double many = cost_of(512);
  CAPTURE(few, many);
  CHECK(many < 1.1 * few);
}

}  // namespace
}  // namespace vllm_metrics
