#include <array>
#include <catch2/catch.hpp>
#include <string>

#include "tests/allocation_count.h"
#include "vllm_metrics/exposition/open_metrics.h"
#include "vllm_metrics/exposition/text_format.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics {
namespace {

TEMPLATE_TEST_CASE("Pages after the first allocate nothing", "[exposition]",
                   TextFormat, OpenMetrics) {
  const auto registry = Registry::create();
  const auto tokens = registry->add_counter({.name = "tokens"}, {{"m", "x"}});
  const auto wait =
      registry->add_histogram({.name = "wait"}, std::array{1.0, 2.0});
  REQUIRE((tokens.ok() && wait.ok()));
  TestType whole;
  TestType part({}, {"wait_count", "tokens"});
  const std::size_t size = whole.render(*registry).size();
  CHECK(part.render(*registry).size() < size);
  CHECK(allocations_of([&] {
          for (int i = 0; i < 100; ++i) {
            (*tokens)->inc(1'000'000);
            (*wait)->observe(i);
            whole.render(*registry);
            part.render(*registry);
          }
        }) == 0);
  CHECK(whole.render(*registry).size() > size);
}

}  // namespace
}  // namespace vllm_metrics
