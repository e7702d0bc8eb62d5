#include <algorithm>
#include <atomic>
#include <bit>
#include <catch2/catch.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/registry/page_lines.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics {
namespace {

using Lines = std::vector<std::string>;

class Values : public SnapshotSource {
 public:
  explicit Values(std::vector<double> values) : values_(std::move(values)) {}
  void read(std::span<std::uint64_t> words) const noexcept override {
    std::ranges::transform(values_, words.begin(), [](double v) {
      return std::bit_cast<std::uint64_t>(v);
    });
  }

 private:
  std::vector<double> values_;
};

// Shows what the test has set: label sets with a value each.
class Adapters : public ChangingSource {
 public:
  using Shown = std::vector<std::pair<std::string, double>>;

  void show(const Shown& shown) {
    auto state = std::make_shared<State>();
    std::vector<double> values;
    for (const auto& [name, value] : shown) {
      state->series.push_back(
          {.labels = {{"running", name}},
           .offset = static_cast<std::uint32_t>(values.size())});
      values.push_back(value);
    }
    state->word_count = values.size();
    state->source = std::make_shared<Values>(std::move(values));
    const std::lock_guard lock(mutex_);
    state_ = std::move(state);
  }
  std::shared_ptr<const State> current() const override {
    const std::lock_guard lock(mutex_);
    return state_;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const State> state_;
};

const Family kInfo{.name = "lora", .help = "Adapters.", .info = true};

std::string text(const absl::Status& status) {
  return std::string(status.message());
}

TEST_CASE("ChangingSource: its series come and go between scrapes",
          "[registry]") {
  const auto registry = Registry::create();
  const auto before = registry->add_counter({.name = "before"});
  const auto adapters = std::make_shared<Adapters>();
  auto registration = registry->add(kInfo, adapters);
  REQUIRE(registration.ok());
  const auto after = registry->add_counter({.name = "after"});
  (*after)->inc(5);
  CHECK(lines_of(*registry) == Lines{"before{} 0", "after{} 5"});
  adapters->show({{"a", 1000}});
  CHECK(lines_of(*registry) ==
        Lines{"before{} 0", R"(lora{running="a"} 1000)", "after{} 5"});
  adapters->show({{"a,b", 1001}, {"b", 1002}});
  CHECK(lines_of(*registry) == Lines{"before{} 0",
                                     R"(lora{running="a,b"} 1001)",
                                     R"(lora{running="b"} 1002)", "after{} 5"});
  adapters->show({});
  CHECK(lines_of(*registry) == Lines{"before{} 0", "after{} 5"});
  adapters->show({{"c", 1003}});
  registration = absl::CancelledError("gone");
  CHECK(lines_of(*registry) == Lines{"before{} 0", "after{} 5"});
}

TEST_CASE("ChangingSource: a page whose series stay keeps its schema",
          "[registry]") {
  const auto registry = Registry::create();
  const auto adapters = std::make_shared<Adapters>();
  const auto registration = registry->add(kInfo, adapters);
  adapters->show({{"a", 1}});
  Snapshot snapshot;
  registry->snapshot(snapshot);
  const auto schema = snapshot.schema;
  registry->snapshot(snapshot);
  CHECK(snapshot.schema == schema);
  adapters->show({{"a", 1}});
  registry->snapshot(snapshot);
  CHECK(snapshot.schema != schema);
}

TEST_CASE(
    "ChangingSource: what two sources show alike is one series, with the "
    "larger value",
    "[registry]") {
  const auto registry = Registry::create();
  const auto first = std::make_shared<Adapters>();
  const auto second = std::make_shared<Adapters>();
  const auto a = registry->add(kInfo, first);
  const auto b = registry->add(kInfo, second);
  REQUIRE(b.ok());
  first->show({{"x", 1000}, {"y", 1004}});
  second->show({{"y", 1003}, {"x", 1002}, {"z", 1001}});
  CHECK(lines_of(*registry) == Lines{R"(lora{running="x"} 1002)",
                                     R"(lora{running="y"} 1004)",
                                     R"(lora{running="z"} 1001)"});
}

TEST_CASE("ChangingSource: its family must be an info family of a free name",
          "[registry]") {
  const auto registry = Registry::create();
  const auto adapters = std::make_shared<Adapters>();
  CHECK(text(registry->add({.name = "g"}, adapters).status()) ==
        "family g has changing series; allowed: an info family");
  CHECK(text(registry->add({.name = "a b", .info = true}, adapters).status()) ==
        "family \"a b\" is not a metric name; allowed: "
        "[a-zA-Z_:][a-zA-Z0-9_:]*");
  CHECK(text(registry->add(kInfo, std::shared_ptr<const ChangingSource>())
                 .status()) ==
        "source is null; allowed: what tells the series of the family");
  const auto taken = registry->add_counter({.name = "lora"});
  CHECK(text(registry->add(kInfo, adapters).status()) ==
        "family lora is already registered as a counter");
  adapters->show({{"a", 1}});
  CHECK(lines_of(*registry) == Lines{"lora{} 0"});
}

TEST_CASE("ChangingSource: scrapes race with its changes",
          "[registry][concurrent]") {
  const auto registry = Registry::create();
  const auto adapters = std::make_shared<Adapters>();
  const auto registration = registry->add(kInfo, adapters);
  std::atomic<bool> stop{false};
  std::atomic<int> changes{0};
  std::thread changer([&] {
    for (int i = 0; !stop.load(); ++i) {
      const auto name = std::to_string(i % 7);
      adapters->show({{name, i % 7}, {name + "x", i % 7}});
      ++changes;
    }
  });
  int wrong = 0;
  Snapshot snapshot;
  for (int scrapes = 0; scrapes < 300 || changes < 300; ++scrapes) {
    registry->snapshot(snapshot);
    for (const auto& [family, series] : snapshot.schema->families) {
      for (const Series& one : series) {
        const auto& name = one.labels.front().value;
        wrong += snapshot.real(one) == name.front() - '0' ? 0 : 1;
      }
    }
  }
  stop = true;
  changer.join();
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace vllm_metrics
