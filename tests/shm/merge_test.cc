// What is more than a word, merged: histograms, native buckets, LoRA info.

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/shm/recorders.h"
#include "tests/shm/shared_folder.h"
#include "vllm_metrics/exposition/open_metrics.h"

using namespace vllm_metrics;  // NOLINT

TEST_CASE(
    "SharedRegistry: histograms of one's own are added, with the bounds "
    "that all have",
    "[shm]") {
  const SharedFolder folder;
  const auto a = folder.open();
  const auto b = folder.open();
  const auto add = [](shm::SharedRegistry& shared, std::vector<double> bounds) {
    auto made = shared.registry()->add_histogram(
        {.name = "h", .help = "A histogram."}, bounds);
    INFO(made.status());
    REQUIRE(made.ok());
    return *std::move(made);
  };
  const auto of_a = add(*a, {1.0, 2.0, 4.0});
  of_a->observe(0.5);
  of_a->observe(3.0, 2);
  of_a->observe(std::vector<double>{1.5, 9.0, std::nan("")});
  CHECK(of_a->rejected() == 1);
  Histogram::Snapshot own;
  of_a->snapshot(own);
  CHECK(own.buckets == std::vector<std::uint64_t>{1, 1, 2, 1});
  CHECK(own.sum == 17.0);

  std::string page;
  SECTION("equal bounds") {
    const auto of_b = add(*b, {1.0, 2.0, 4.0});
    of_b->observe(2.0);
    page = page_of(*a->registry());
    CHECK(sample(page, R"(h_bucket{le="4.0"})") == 5.0);
  }
  SECTION("other bounds") {
    const auto of_b = add(*b, {1.0, 2.0, 8.0});
    of_b->observe(2.0);
    page = page_of(*b->registry());
    CHECK(page.find(R"(h_bucket{le="4.0"})") == std::string::npos);
  }
  CHECK(sample(page, R"(h_bucket{le="1.0"})") == 1.0);
  CHECK(sample(page, R"(h_bucket{le="2.0"})") == 3.0);
  CHECK(sample(page, "h_count") == 6.0);
  CHECK(sample(page, "h_sum") == 19.0);
}

TEST_CASE("SharedRegistry: native buckets of all processes are one histogram",
          "[shm]") {
  const SharedFolder folder;
  const auto a = folder.open();
  const auto b = folder.open();
  const auto manager_with_native = [](shm::SharedRegistry& shared) {
    auto options = options_on(shared.registry());
    options.native_latency_histograms = NativeHistogramOptions{};
    return manager_of(std::move(options));
  };
  const auto of_a = manager_with_native(*a);
  const auto of_b = manager_with_native(*b);
  const auto first_token = [](StatLoggerManager& manager, double seconds) {
    IterationStats step;
    step.time_to_first_tokens_iter.push_back(seconds);
    manager.record(nullptr, &step);
  };
  first_token(*of_a, 0.2);
  first_token(*of_b, 0.2);
  in_child([&] { first_token(*of_a, 0.4); });
  Snapshot snapshot;
  for (int scrape = 0; scrape < 2; ++scrape) {  // in the second it is folded
    b->registry()->snapshot(snapshot);
    bool found = false;
    for (const SchemaFamily& family : snapshot.schema->families) {
      if (family.family.name != "vllm:time_to_first_token_seconds") continue;
      found = true;
      const NativeView native = snapshot.native(family.series.at(0));
      CHECK(native.schema == NativeHistogramOptions{}.schema);
      std::uint64_t count = 0;
      for (const auto n : native.counts) count += n;
      CHECK(count == 3);
    }
    CHECK(found);
  }
}

TEST_CASE("SharedRegistry: adapters come and go, each process shows its newest",
          "[shm]") {
  const SharedFolder folder;
  const auto a = folder.open();
  const auto b = folder.open();
  const auto manager_at = [](shm::SharedRegistry& shared, double wall) {
    auto options = options_on(shared.registry(), wall);
    options.max_loras = 2;
    return manager_of(std::move(options));
  };
  const auto of_a = manager_at(*a, 10.0);
  const auto of_b = manager_at(*b, 20.0);
  const auto step = [](StatLoggerManager& manager, const std::string& running) {
    SchedulerStats scheduler;
    scheduler.running_lora_adapters = {{running, 1}};
    manager.record(&scheduler, nullptr);
  };
  const auto value = [&](const std::string& running) {
    return sample(page_of(*a->registry()),
                  R"(vllm:lora_requests_info{max_lora="2",)"
                  R"(running_lora_adapters=")" +
                      running + R"(",waiting_lora_adapters=""})");
  };
  step(*of_a, "x");
  step(*of_b, "y");
  CHECK(value("x") == 10.0);
  CHECK(value("y") == 20.0);
  step(*of_b, "x");
  CHECK(value("x") == 20.0);
  CHECK(std::isnan(value("y")));
  // Of the past there, but the newest time of what is shown here.
  step(*of_b, "z");
  CHECK(value("x") == 20.0);
  CHECK(value("z") == 20.0);
  SECTION("a list that is too long ends at a name") {
    std::vector<std::string> names;
    for (const char c : {'1', '2', '3', '4'})
      names.push_back(std::string(400, 'n') + c);
    SchedulerStats scheduler;
    for (const std::string& name : names)
      scheduler.running_lora_adapters.push_back({name, 1});
    of_a->record(&scheduler, nullptr);
    CHECK(value(names[0] + "," + names[1] + ",...") == 10.0);
  }
}

TEST_CASE("SharedRegistry: what processes share began with the first of them",
          "[shm]") {
  const SharedFolder folder;
  const auto since = [](const Registry& registry) {
    Snapshot snapshot;
    registry.snapshot(snapshot);
    return snapshot.schema->since;
  };
  const double before = Clock::system()->wall();
  auto first = folder.open();
  auto manager = manager_of(options_on(first->registry()));
  const double began = since(*first->registry());
  CHECK(began >= before);
  CHECK(began <= Clock::system()->wall());

  const auto second = folder.open();
  const auto stays = manager_of(options_on(second->registry()));
  CHECK(since(*second->registry()) == began);
  // Closed, then folded, by the first page after it.
  manager = nullptr;
  first = nullptr;
  CHECK(since(*second->registry()) == began);
  CHECK(folder.segments().size() == 1);
  CHECK(since(*second->registry()) == began);
  CHECK(since(*folder.open({.read_only = true})->registry()) == began);
}

TEST_CASE("SharedRegistry: what processes share has no time of creation",
          "[shm]") {
  const SharedFolder folder;
  const auto shared = folder.open();
  const auto manager = manager_of(options_on(shared->registry()));
  TextFormat format({.created_series = true});
  CHECK(format.render(*shared->registry()).find("_created") ==
        std::string_view::npos);
}

TEST_CASE("SharedRegistry: a bucket's exemplar is the newest of all processes",
          "[shm]") {
  const SharedFolder folder;
  const auto shared = folder.open();
  // A request of `seconds` that ended at `wall`, in a process that has ended.
  const auto end_request = [&](std::uint8_t id, double seconds, double wall,
                               bool has_native) {
    in_child([&] {
      auto options = options_on(folder.open()->registry(), wall);
      options.exemplars = true;
      if (has_native)
        options.native_latency_histograms = NativeHistogramOptions{};
      const auto manager = manager_of(std::move(options));
      IterationStats step;
      auto& finished = step.finished_requests.emplace_back();
      finished.e2e_latency = seconds;
      finished.trace = {.trace_id = {id}, .span_id = {1}, .flags = 1};
      manager->record(nullptr, &step);
    });
  };
  const auto exemplar = [&](const std::string& bucket) {
    const std::string page(OpenMetrics().render(*shared->registry()));
    const std::string name =
        R"(vllm:e2e_request_latency_seconds_bucket{engine="0",le=")" + bucket;
    const std::size_t line = page.find(name);
    const std::size_t at = page.find("trace_id=\"", line);
    return at < page.find('\n', line) ? page.substr(at + 10, 2) : "none";
  };
  end_request(0xAA, 0.9, 1000.0, true);
  CHECK(exemplar("1.0") == "aa");
  end_request(0xBB, 0.95, 2000.0, false);
  end_request(0xCC, 0.85, 1500.0, true);
  end_request(0xDD, 1.2, 500.0, true);
  // Read from the segments, and from what was folded.
  for (int scrape = 0; scrape < 3; ++scrape) {
    CHECK(exemplar("1.0") == "bb");
    CHECK(exemplar("1.5") == "dd");
    CHECK(exemplar("2.0") == "none");
  }
  const int status = in_child([&] {
    const auto manager = manager_of(options_on(folder.open()->registry()));
    manager->record(nullptr, nullptr);
  });
  CHECK(status == 0);
  CHECK(exemplar("1.0") == "bb");
  CHECK(folder.segments().size() == 1);
}
