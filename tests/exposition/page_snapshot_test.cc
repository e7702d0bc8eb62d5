#include "vllm_metrics/exposition/page_snapshot.h"

#include <catch2/catch.hpp>
#include <limits>
#include <string>

#include "vllm_metrics/exposition/open_metrics.h"
#include "vllm_metrics/exposition/text_format.h"
#include "vllm_metrics/exposition/text_parser.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics {
namespace {

absl::Status refusal(const std::string& text) {
  const auto page = parse_page(text, {.mode = ParseOptions::Mode::kTolerant});
  REQUIRE(page.ok());
  return snapshot_of(*page).status();
}

TEST_CASE("snapshot_of: a page of this library is written again to the byte",
          "[exposition]") {
  const auto registry = Registry::create();
  const double bounds[] = {-1, 0.001, 0.3, 1e6, 1.5e10};
  const auto counter = registry->add_counter(
      {.name = "c_total", .help = "  back\\slash\nline \"quote\" \r"});
  const auto gauge = registry->add_gauge(
      {.name = "a:g", .help = ""}, {{"z", "\"\\\n"}, {"b", "{le=\"1\"} # é"}});
  const auto other =
      registry->add_gauge({.name = "a:g", .help = ""}, {{"z", ""}, {"b", ""}});
  const auto histogram = registry->add_histogram(
      {.name = "h_total", .help = "h"}, bounds, {{"m", "x"}, {"a", "y"}});
  REQUIRE((counter.ok() && gauge.ok() && other.ok() && histogram.ok()));
  (*counter)->inc((std::uint64_t{1} << 61) + 12345);
  (*gauge)->set(-std::numeric_limits<double>::infinity());
  (*other)->set(std::numeric_limits<double>::quiet_NaN());
  for (const double v : {-5.0, 0.001, 0.2, 7.0, 1e11}) (*histogram)->observe(v);

  const bool created = GENERATE(false, true);
  const std::string page(
      TextFormat({.created_series = created}).render(*registry));
  const auto parsed = parse_page(page);
  REQUIRE(parsed.ok());
  const auto snapshot = snapshot_of(*parsed);
  INFO(snapshot.status());
  REQUIRE(snapshot.ok());
  CHECK(TextFormat().render(*snapshot) == page);
}

TEST_CASE("snapshot_of: an OpenMetrics page is written again to the byte",
          "[exposition]") {
  const auto registry = Registry::create();
  const double bounds[] = {0.5, 1e6};
  const auto counter =
      registry->add_counter({.name = "c_seconds",
                             .help = "  back\\slash\nline \"quote\" \r",
                             .unit = "seconds"},
                            {{"z", "\"\\\n# EOF"}});
  const auto gauge = registry->add_gauge({.name = "a:g_bytes", .unit = "bytes"},
                                         {{"b", "{le=\"1\"} # é"}});
  const auto other = registry->add_gauge({.name = "used", .unit = "ratio"});
  const auto histogram =
      registry->add_histogram({.name = "h_total", .help = "h", .unit = "total"},
                              bounds, {{"m", "x"}, {"a", "y"}});
  REQUIRE((counter.ok() && gauge.ok() && other.ok() && histogram.ok()));
  (*counter)->inc(7);
  (*gauge)->set(-std::numeric_limits<double>::infinity());
  (*other)->set(std::numeric_limits<double>::quiet_NaN());
  for (const double v : {-5.0, 0.001, 7.0, 1e11}) (*histogram)->observe(v);

  const OpenMetricsOptions options{.created_series = GENERATE(false, true)};
  const std::string page(OpenMetrics(options).render(*registry));
  const auto parsed = parse_page(page);
  REQUIRE(parsed.ok());
  const auto snapshot = snapshot_of(*parsed);
  INFO(snapshot.status());
  REQUIRE(snapshot.ok());
  CHECK(OpenMetrics(options).render(*snapshot) == page);
}

TEST_CASE("snapshot_of: what a snapshot cannot hold is refused by name",
          "[exposition]") {
  CHECK(refusal("u 1\n").message() ==
        "family u is of type untyped; allowed: counter, gauge, histogram");
  CHECK(refusal("# TYPE s summary\ns_sum 1\n").message() ==
        "family s is of type summary; allowed: counter, gauge, histogram");
  CHECK(refusal("# TYPE h histogram\nh_bucket{le=\"1\"} 0.5\n").message() ==
        "family h has a bucket that is not whole or below the one before it; "
        "allowed: whole numbers, cumulative");
  CHECK(refusal("# TYPE h histogram\nh_bucket{le=\"+Inf\"} 1\n").message() ==
        "family h lacks a finite bucket or le=\"+Inf\"; allowed: at least one, "
        "and +Inf");
  CHECK(refusal("# TYPE h histogram\nh_bucket{le=\"-Inf\"} "
                "0\nh_bucket{le=\"+Inf\"} 1\n")
            .message() == "family h has bounds that do not ascend");
}

}  // namespace
}  // namespace vllm_metrics
