#include <catch2/catch.hpp>
#include <string>
#include <string_view>

#include "vllm_metrics/exposition/text_parser.h"

namespace vllm_metrics {
namespace {

Page strict(std::string_view text) {
  auto page = parse_page(text);
  INFO(page.status());
  REQUIRE(page.ok());
  return *std::move(page);
}

std::string refusal(const std::string& text) {
  const auto page = parse_page(text, {.format = PageFormat::kOpenMetrics});
  REQUIRE_FALSE(page.ok());
  const auto tolerant = parse_page(text, {.mode = ParseOptions::Mode::kTolerant,
                                          .format = PageFormat::kOpenMetrics});
  REQUIRE(tolerant.ok());
  CHECK(tolerant->fault_count > 0);
  return std::string(page.status().message());
}

TEST_CASE("OpenMetrics parser: metadata, exemplars, timestamps and creation",
          "[exposition]") {
  const Page page = strict(
      "# TYPE wait_seconds histogram\n"
      "# UNIT wait_seconds seconds\n"
      "# HELP wait_seconds Time \\\"queued\\\".\n"
      "wait_seconds_bucket{le=\"0.5\"} 1 # {id=\"a\"} 0.25 1700000000.5\n"
      "wait_seconds_bucket{le=\"+Inf\"} 2 # {} 7\n"
      "wait_seconds_count 2\n"
      "wait_seconds_sum 7.25\n"
      "wait_seconds_created 1600000000.25\n"
      "# TYPE jobs counter\n"
      "jobs_total{q=\"1\"} 5 12.5 # {id=\"b\"} 1\n"
      "jobs_created{q=\"1\"} 3\n"
      "# TYPE build info\n"
      "build_info{version=\"1\"} 1\n"
      "# TYPE mode stateset\n"
      "mode{mode=\"on\"} 1\n"
      "mode{mode=\"off\"} 0\n"
      "# TYPE sizes gaugehistogram\n"
      "sizes_bucket{le=\"+Inf\"} 3\n"
      "sizes_gcount 3\n"
      "sizes_gsum -4\n"
      "# TYPE x unknown\n"
      "x 1\n"
      "# EOF\n");
  CHECK(page.format == PageFormat::kOpenMetrics);
  REQUIRE(page.families.size() == 6);
  const PageFamily& wait = page.families[0];
  CHECK(wait.unit == "seconds");
  CHECK(wait.help == "Time \"queued\".");
  const PageSeries& waits = wait.series.at(0);
  CHECK(waits.created == 1600000000.25);
  const PageExemplar* exemplar = waits.buckets.at(0).exemplar;
  REQUIRE(exemplar != nullptr);
  CHECK((exemplar->labels[0] == PageLabel{"id", "a"}));
  CHECK(exemplar->value == 0.25);
  CHECK(exemplar->timestamp == 1700000000.5);
  REQUIRE(waits.buckets.at(1).exemplar != nullptr);
  CHECK(waits.buckets[1].exemplar->labels.empty());
  CHECK_FALSE(waits.buckets[1].exemplar->timestamp.has_value());
  const PageSeries& jobs = page.families[1].series.at(0);
  CHECK(jobs.value == 5.0);
  CHECK(jobs.timestamp == 12.5);
  CHECK(jobs.created == 3.0);
  REQUIRE(jobs.exemplar != nullptr);
  CHECK(jobs.exemplar->value == 1.0);
  CHECK(page.find("jobs_total") == &page.families[1]);
  CHECK(name_of(page.families[2].kind) == "info");
  CHECK(name_of(page.families[3].kind) == "stateset");
  CHECK(page.families[3].series.size() == 2);
  CHECK(name_of(page.families[4].kind) == "gaugehistogram");
  CHECK(page.families[4].series.at(0).sum == -4.0);
  CHECK(name_of(page.families[5].kind) == "untyped");
}

TEST_CASE("OpenMetrics parser: buckets alone are a histogram too",
          "[exposition]") {
  const Page page = strict(
      "# TYPE h histogram\n"
      "h_bucket{le=\"-1.0\"} 1\n"
      "h_bucket{le=\"+Inf\"} 2\n"
      "# EOF\n");
  CHECK(page.families.at(0).series.at(0).count == 2.0);
  CHECK_FALSE(page.families[0].series[0].sum.has_value());
}

TEST_CASE("OpenMetrics parser: # EOF at the end makes the format",
          "[exposition]") {
  CHECK(strict("a 1\n# EOF\n").format == PageFormat::kOpenMetrics);
  CHECK(strict("a 1\n# EOF \n").format == PageFormat::kText);
  CHECK(strict("a 1\n# EOF\nb 1\n").format == PageFormat::kText);
}

TEST_CASE("OpenMetrics parser: is stricter than the text format's",
          "[exposition]") {
  const auto [text, expected] = GENERATE(table<std::string, std::string>(
      {{"a 1\n", "line 2, column 1: the page ends without # EOF"},
       {"# EOF\na 1\n# EOF\n",
        "line 2, column 1: a line after # EOF; allowed: none"},
       {"a 1\n\n# EOF\n",
        "line 2, column 1: an empty line; OpenMetrics has none"},
       {"# note\n# EOF\n",
        "line 1, column 3: a comment that begins with \"note\"; OpenMetrics "
        "allows: HELP, TYPE, UNIT, EOF"},
       {"a  1\n# EOF\n",
        "line 1, column 2: OpenMetrics has one space here, no more and no tab"},
       {"a\t1\n# EOF\n",
        "line 1, column 2: OpenMetrics has one space here, no more and no tab"},
       {"a{b=\"1\"}1\n# EOF\n",
        "line 1, column 9: OpenMetrics has one space here, no more and no tab"},
       {"# HELP a\tx\n# EOF\n",
        "line 1, column 9: OpenMetrics has one space here, no more and no tab"},
       {"a{ b=\"1\"} 1\n# EOF\n",
        "line 1, column 3: OpenMetrics has no blank here"},
       {"a{b=\"1\",} 1\n# EOF\n",
        "line 1, column 8: OpenMetrics has no comma behind the last label"},
       {"# TYPE c counter\nc 1\n# EOF\n",
        "line 2, column 1: counter c has a sample c; allowed: c_total"},
       {"# TYPE c counter\nc_total -1\n# EOF\n",
        "line 2, column 1: counter c is negative or NaN; allowed: from 0 on"},
       {"# TYPE c counter\nc_created 1\n# EOF\n",
        "line 2, column 1: counter c has no sample c_total of these labels"},
       {"# TYPE c counter\n# UNIT c seconds\nc_total 1\n# EOF\n",
        "line 2, column 1: the unit of c is \"seconds\"; allowed: what the "
        "name "
        "ends in, behind _"},
       {"# TYPE a untyped\n# EOF\n",
        "line 1, column 1: the type of a is \"untyped\"; allowed: counter, "
        "gauge, histogram, summary, info, stateset, gaugehistogram and "
        "unknown"},
       {"a 1\n# HELP a x\n# EOF\n",
        "line 2, column 1: HELP of a stands below its samples"},
       {"a 1 # {x=\"1\"} 1\n# EOF\n",
        "line 1, column 1: sample a has an exemplar; allowed: counters and "
        "buckets"},
       {"# TYPE c counter\nc_total 1 # x\n# EOF\n",
        "line 2, column 11: behind # stands \"x\"; allowed: the labels of an "
        "exemplar, {}"},
       {"# TYPE c counter\nc_total 1 # {} x\n# EOF\n",
        "line 2, column 16: the exemplar's value is \"x\"; allowed: a decimal "
        "number, NaN, +Inf, -Inf"},
       {"# TYPE c counter\nc_total 1 # {} 1 2 3\n# EOF\n",
        "line 2, column 20: behind an exemplar the line ends, not \"3\""},
       {"# TYPE c counter\nc_total 1 # {x=\"" + std::string(128, 'y') +
            "\"} 1\n# EOF\n",
        "line 2, column 11: the exemplar's labels have 129 characters; "
        "allowed: 128"},
       {"a 1 x\n# EOF\n",
        "line 1, column 5: the timestamp is \"x\"; allowed: a decimal number, "
        "NaN, +Inf, -Inf"},
       {"# TYPE h histogram\nh_bucket{le=\"+Inf\"} 1\nh_sum 1\n# EOF\n",
        "line 2, column 1: histogram h has one of _sum and _count; allowed: "
        "both or none"},
       {"# TYPE h histogram\nh_bucket{le=\"-1\"} 1\nh_bucket{le=\"+Inf\"} 1\n"
        "h_sum -1\nh_count 1\n# EOF\n",
        "line 2, column 1: histogram h has a negative bound and a _sum; "
        "allowed: one of them"}}));
  CAPTURE(text);
  CHECK(refusal(text) == expected);
}

TEST_CASE(
    "OpenMetrics parser: tolerant mode keeps a sample whose exemplar is "
    "faulty",
    "[exposition]") {
  const auto page = parse_page("# TYPE c counter\nc_total 5 # {x\n# EOF\n",
                               {.mode = ParseOptions::Mode::kTolerant});
  REQUIRE(page.ok());
  CHECK(page->fault_count == 1);
  CHECK(page->families.at(0).series.at(0).value == 5.0);
  CHECK(page->families[0].series[0].exemplar == nullptr);
}

}  // namespace
}  // namespace vllm_metrics
