#include "vllm_metrics/exposition/metric_reader.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "vllm_metrics/exposition/text_format.h"
#include "vllm_metrics/exposition/text_parser.h"

namespace vllm_metrics {
namespace {

Page page_of(std::string_view text) {
  auto page = parse_page(text, {.mode = ParseOptions::Mode::kTolerant});
  REQUIRE(page.ok());
  return *std::move(page);
}

TEST_CASE("MetricReader: a registry and its page read the same",
          "[exposition]") {
  const auto registry = Registry::create();
  const double bounds[] = {0.5, 2};
  const auto tokens0 = registry->add_counter({.name = "x:tokens", .help = "t"},
                                             {{"engine", "0"}, {"m", "a"}});
  const auto tokens1 = registry->add_counter({.name = "x:tokens", .help = "t"},
                                             {{"engine", "1"}, {"m", "a"}});
  const auto running =
      registry->add_gauge({.name = "x:running", .help = "r"}, {{"m", "a"}});
  const auto waits = registry->add_histogram(
      {.name = "x:steps_total", .help = "w"}, bounds, {{"m", "a"}});
  const auto accepted =
      registry->add_counter({.name = "x:accepted_per_pos", .help = "p"},
                            {{"engine", "0"}, {"position", "2"}});
  const auto other = registry->add_gauge({.name = "y", .help = "y"});
  REQUIRE((tokens0.ok() && tokens1.ok() && running.ok() && waits.ok() &&
           accepted.ok() && other.ok()));
  (*tokens0)->inc(5);
  (*tokens1)->inc(7);
  (*running)->set(-2.5);
  for (const double v : {0.5, 1.0, 9.0}) (*waits)->observe(v);
  (*accepted)->inc(4);

  const std::string text(TextFormat().render(*registry));
  const Page page = page_of(text);
  const bool from_page = GENERATE(false, true);
  const MetricReader reader =
      from_page ? MetricReader(page, "x:") : MetricReader(*registry, "x:");
  CHECK(reader.all().size() == 5);
  CHECK(reader.counter("x:tokens", {{"engine", "0"}}) == 5.0);
  CHECK(reader.counter("x:tokens_total", {{"engine", "1"}}) == 7.0);
  CHECK_FALSE(reader.counter("x:tokens"));  // two
  CHECK_FALSE(reader.counter("x:tokens", {{"engine", "2"}}));
  CHECK_FALSE(reader.gauge("x:tokens", {{"engine", "0"}}));
  CHECK(reader.select("x:tokens", {{"m", "a"}}).size() == 2);
  CHECK(reader.gauge("x:running") == -2.5);
  const HistogramValue* histogram = reader.histogram("x:steps_total");
  REQUIRE(histogram != nullptr);
  CHECK(histogram->bounds == std::vector<double>{0.5, 2});
  CHECK(histogram->buckets == std::vector<std::uint64_t>{1, 2, 3});
  CHECK(histogram->sum == 10.5);
  const VectorValue* vector =
      reader.vector("x:accepted_per_pos", {{"engine", "0"}});
  REQUIRE(vector != nullptr);
  CHECK(*vector == VectorValue{0, 0, 4});
  CHECK_FALSE(reader.gauge("y"));
}

TEST_CASE("MetricReader: a faulty histogram of a page never falls",
          "[exposition]") {
  const std::string text =
      "# TYPE h histogram\n"
      "h_bucket{le=\"1\"} 5\n"
      "h_bucket{le=\"2\"} NaN\n"
      "h_bucket{le=\"3\"} 7\n"
      "h_count 9\n";
  const MetricReader reader(page_of(text));
  const HistogramValue* h = reader.histogram("h");
  REQUIRE(h != nullptr);
  CHECK(h->bounds == std::vector<double>{1, 2, 3});
  CHECK(h->buckets == std::vector<std::uint64_t>{5, 5, 7, 9});
}

TEST_CASE("MetricReader: what a page says of positions is not believed",
          "[exposition]") {
  const MetricReader reader(
      page_of("# TYPE a_per_pos_total counter\n"
              "a_per_pos_total{position=\"99999999999\"} 1\n"
              "a_per_pos_total{position=\"-1\"} 2\n"
              "a_per_pos_total{position=\"1\"} 3\n"
              "a_per_pos_total 1e300\n"));
  CHECK(reader.select("a_per_pos").size() == 4);
  REQUIRE(reader.all().size() == 4);
  CHECK(reader.counter("a_per_pos", {{"position", "-1"}}) == 2.0);
}

TEST_CASE("MetricReader: untyped samples are gauges, summaries are left out",
          "[exposition]") {
  const MetricReader reader(
      page_of("u 1\n# TYPE s summary\ns_sum 2\ns_count 1\n"));
  CHECK(reader.gauge("u") == 1.0);
  CHECK(reader.all().size() == 1);
}

TEST_CASE("MetricReader: an empty snapshot has nothing", "[exposition]") {
  CHECK(MetricReader(Snapshot()).all().empty());
  CHECK(MetricReader(*Registry::create()).all().empty());
}

}  // namespace
}  // namespace vllm_metrics
