#include "vllm_metrics/protobuf/protobuf_format.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/allocation_count.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics {
namespace {

using protobuf::ProtobufFormat;

class Nothing final : public SnapshotSource {
 public:
  void read(std::span<std::uint64_t>) const noexcept override {}
};

TEST_CASE("ProtobufFormat: a page is messages with their length in front",
          "[protobuf]") {
  const auto registry = Registry::create();
  const auto gauge = *registry->add_gauge(
      {.name = "depth", .help = "How deep."}, {{"pool", "a"}});
  gauge->set(1.5);
  // name, help, type 1, metric {label {name, value}, gauge {value}}
  const std::string metric = std::string("\x0a\x09\x0a\x04pool\x12\x01") +
                             "a\x12\x09\x09" +
                             std::string("\0\0\0\0\0\0\xf8\x3f", 8);
  const std::string family = std::string("\x0a\x05") +
                             "depth\x12\x09How deep." + "\x18\x01\x22\x16" +
                             metric;
  REQUIRE(metric.size() == 0x16);
  CHECK(ProtobufFormat().render(*registry) ==
        static_cast<char>(family.size()) + family);
}

TEST_CASE("ProtobufFormat: a snapshot of nothing is an empty page",
          "[protobuf]") {
  CHECK(ProtobufFormat().render(Snapshot()).empty());
  CHECK(ProtobufFormat().render(*Registry::create()).empty());
}

TEST_CASE("ProtobufFormat: a family without series is left out", "[protobuf]") {
  const auto registry = Registry::create();
  const auto registration =
      *registry->add({{{.name = "depth", .help = "How deep."}, {}}},
                     std::make_shared<Nothing>(), 0);
  CHECK(ProtobufFormat().render(*registry).empty());
}

TEST_CASE(
    "ProtobufFormat: pages after the first allocate nothing, and follow "
    "the values and the series",
    "[protobuf]") {
  const auto registry = Registry::create();
  const std::vector<double> bounds = {0.1, 1.0};
  const auto latency =
      *registry->add_histogram({.name = "latency", .help = "Time."}, bounds);
  const auto events = *registry->add_counter({.name = "events", .help = "N."});
  ProtobufFormat format;
  const std::string first(format.render(*registry));
  std::string_view page;
  CHECK(allocations_of([&] {
          for (int i = 0; i < 1000; ++i) {
            latency->observe(0.05 * i);
            events->inc();
            page = format.render(*registry);
          }
        }) == 0);
  CHECK(page.size() > first.size());  // longer numbers
  CHECK(page == ProtobufFormat().render(*registry));
  const auto more = *registry->add_gauge({.name = "more", .help = "More."});
  CHECK(format.render(*registry) == ProtobufFormat().render(*registry));
}

}  // namespace
}  // namespace vllm_metrics
