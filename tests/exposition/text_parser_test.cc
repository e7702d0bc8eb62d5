#include "vllm_metrics/exposition/text_parser.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace vllm_metrics {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Page strict(std::string_view text) {
  auto page = parse_page(text);
  INFO(page.status());
  REQUIRE(page.ok());
  CHECK(page->fault_count == 0);
  return *std::move(page);
}

Page tolerant(std::string_view text) {
  auto page = parse_page(text, {.mode = ParseOptions::Mode::kTolerant});
  REQUIRE(page.ok());
  return *std::move(page);
}

std::string refusal(std::string_view text) {
  const auto page = parse_page(text);
  REQUIRE(page.status().code() == absl::StatusCode::kInvalidArgument);
  return std::string(page.status().message());
}

std::vector<double> counts(const PageSeries& series) {
  std::vector<double> all;
  for (const PageBucket& bucket : series.buckets) all.push_back(bucket.count);
  return all;
}

std::vector<double> bounds(const PageSeries& series) {
  std::vector<double> all;
  for (const PageBucket& bucket : series.buckets) all.push_back(bucket.bound);
  return all;
}

TEST_CASE("text parser: families, series and values in the page's order",
          "[exposition]") {
  const Page page = strict(
      "# HELP jobs_total Jobs done. \n"
      "# TYPE jobs_total counter\n"
      "jobs_total{queue=\"a\",state=\"x\"} 3.0\n"
      "jobs_total{state=\"x\",queue=\"b\"} 4\n"
      "# any other comment\n"
      "\n"
      "# TYPE load gauge\n"
      "load -0.25 1700000000500\n");
  CHECK(page.format == PageFormat::kText);
  REQUIRE(page.families.size() == 2);
  const PageFamily& jobs = page.families[0];
  CHECK(jobs.name == "jobs_total");
  CHECK(jobs.help == "Jobs done. ");  // to the last blank
  CHECK(name_of(jobs.kind) == "counter");
  REQUIRE(jobs.series.size() == 2);
  CHECK(jobs.series[0].value == 3.0);
  CHECK(jobs.series[0].line == 3);
  REQUIRE(jobs.series[1].labels.size() == 2);  // sorted by name
  CHECK((jobs.series[1].labels[0] == PageLabel{"queue", "b"}));
  CHECK((jobs.series[1].labels[1] == PageLabel{"state", "x"}));
  const PageFamily& load = page.families[1];
  CHECK(load.help.empty());
  CHECK(load.series.at(0).value == -0.25);
  CHECK(load.series.at(0).timestamp == 1700000000.5);
  CHECK(page.find("jobs") == &jobs);
  CHECK(page.find("jobs_total") == &jobs);
  CHECK(page.find("load_total") == nullptr);
}

TEST_CASE("text parser: every spelling of a number", "[exposition]") {
  const auto [text, value] = GENERATE(table<std::string, double>(
      {{"1", 1.0},
       {"1.", 1.0},
       {".5", 0.5},
       {"-.5E-1", -0.05},
       {"+3", 3.0},
       {"007", 7.0},
       {"1.9392065536e+010", 19392065536.0},
       {"1e+06", 1e6},
       {"123456789012345", 123456789012345.0},
       {"1234567890123456789", 1234567890123456789.0},
       {"0.07500000000000001", 0.07500000000000001},
       {"4.9406564584124654e-324", 4.9406564584124654e-324},
       {"1.7976931348623157e+308", 1.7976931348623157e+308},
       {"Inf", kInf},
       {"+Inf", kInf},
       {"-Inf", -kInf},
       {"-infinity", -kInf},
       {"1e400", kInf},
       {"-1e99999999999999999999", -kInf},
       {"1e-400", 0.0},
       {"1e-99999999999999999999", 0.0},
       {"0." + std::string(400, '0') + "1e5", 0.0},
       {"1" + std::string(400, '0') + "e-5", kInf},
       {"1" + std::string(400, '0') + "e-400", 1.0}}));
  CAPTURE(text);
  CHECK(strict("m " + text + "\n").families.at(0).series.at(0).value == value);
}

TEST_CASE("text parser: NaN is read in any case, with or without sign",
          "[exposition]") {
  for (const std::string text : {"NaN", "nan", "-NaN", "+NaN"}) {
    CAPTURE(text);
    CHECK(std::isnan(
        strict("m " + text + "\n").families.at(0).series.at(0).value));
  }
}

TEST_CASE("text parser: what is no number is named", "[exposition]") {
  for (const std::string text : {"1_0", "0x10", "nan(1)", "--1", "+-1", "1e",
                                 "1e+", ".", "one", "1,5", "infinite", "1\v"}) {
    CAPTURE(text);
    CHECK(refusal("m " + text + "\n") ==
          "line 1, column 3: the value is \"" + text +
              "\"; allowed: a decimal number, NaN, +Inf, -Inf");
  }
}

TEST_CASE("text parser: escapes are undone, in HELP and in label values",
          "[exposition]") {
  const Page page = strict(
      "# HELP m a\\\\b\\nc\"d\n"
      "# TYPE m gauge\n"
      "m{path=\"C:\\\\x\\n\\\"y\\\"\",other=\"{,}= #\"} 1\n"
      "m{path=\"\",other=\"{,}= #\"} 2\n");
  CHECK(page.families.at(0).help == "a\\b\nc\"d");
  const auto& series = page.families[0].series;
  REQUIRE(series.size() == 2);
  CHECK(series[0].labels[0].value == "{,}= #");
  CHECK(series[0].labels[1].value == "C:\\x\n\"y\"");
  CHECK(series[1].labels[1].value.empty());
}

TEST_CASE("text parser: blanks may stand where the text format has them",
          "[exposition]") {
  const Page page = strict(
      "#  TYPE\t m   gauge  \n"
      " \tm { a = \"1\" ,\tb= \"2\" , } \t 5 \t 12 \n"
      "m{a=\"3\",b=\"2\"}6\n");
  REQUIRE(page.families.size() == 1);
  CHECK(name_of(page.families[0].kind) == "gauge");
  REQUIRE(page.families[0].series.size() == 2);
  CHECK(page.families[0].series[0].timestamp == 0.012);
  CHECK(page.families[0].series[1].value == 6.0);
}

TEST_CASE("text parser: a histogram's parts come in any order",
          "[exposition]") {
  const Page page = strict(
      "# TYPE h histogram\n"
      "h_sum{e=\"0\"} 1.5\n"
      "h_count{e=\"0\"} 4\n"
      "h_bucket{le=\"+Inf\",e=\"0\"} 4\n"
      "h_bucket{e=\"0\",le=\"0.5\"} 3\n"
      "h_bucket{e=\"0\",le=\"-1\"} 1\n"
      "h_bucket{e=\"1\",le=\"+Inf\"} 0\n"
      "h_sum{e=\"1\"} 0\n"
      "h_count{e=\"1\"} 0\n");
  REQUIRE(page.families.size() == 1);
  const auto& series = page.families[0].series;
  REQUIRE(series.size() == 2);
  CHECK(bounds(series[0]) == std::vector<double>{-1, 0.5, kInf});
  CHECK(counts(series[0]) == std::vector<double>{1, 3, 4});
  CHECK(series[0].count == 4.0);
  CHECK(series[0].sum == 1.5);
  CHECK((series[0].labels[0] == PageLabel{"e", "0"}));
  CHECK(series[0].labels.size() == 1);
  CHECK(bounds(series[1]) == std::vector<double>{kInf});
}

TEST_CASE("text parser: buckets that look like those before are read right",
          "[exposition]") {
  std::string text = "# TYPE h histogram\n";
  for (const std::string e : {"0", "1", "2"}) {
    const std::string rest = ",e=\"" + e + "\"} ";
    text += "h_bucket{le=\"1\"" + rest + "1\n";
    text += "h_bucket{le=\"2\"" + rest + e + "1\n";
    text += "h_bucket{le=\"+Inf\"" + rest + e + "2\n";
    text += "h_count{e=\"" + e + "\"} " + e + "2\n";
    text += "h_sum{e=\"" + e + "\"} 1\n";
  }
  text += "# TYPE all histogram\n";  // le never changes, the label does
  for (const std::string e : {"0", "1", "2"}) {
    text += "all_bucket{le=\"+Inf\",e=\"" + e + "\"} " + e + "\n";
  }
  for (const std::string e : {"0", "1", "2"}) {
    text += "all_count{e=\"" + e + "\"} " + e + "\n";
    text += "all_sum{e=\"" + e + "\"} " + e + "\n";
  }
  const Page page = strict(text);
  REQUIRE(page.families.size() == 2);
  REQUIRE(page.families[0].series.size() == 3);
  CHECK(counts(page.families[0].series[0]) == std::vector<double>{1, 1, 2});
  CHECK(counts(page.families[0].series[1]) == std::vector<double>{1, 11, 12});
  CHECK(counts(page.families[0].series[2]) == std::vector<double>{1, 21, 22});
  REQUIRE(page.families[1].series.size() == 3);
  CHECK(counts(page.families[1].series[2]) == std::vector<double>{2});
}

TEST_CASE("text parser: what is unusual among buckets is not passed over",
          "[exposition]") {
  const std::string start =
      "# TYPE h histogram\nh_bucket{le=\"1\",e=\"0\"} 1\n";
  CHECK(refusal(start + "h_bucket{le=\"x\",e=\"0\"} 1\n") ==
        "line 3, column 1: bucket h_bucket has le=\"x\"; allowed: "
        "le=\"NUMBER\" and le=\"+Inf\"");
  CHECK(
      refusal(start + "h_bucket{le=\"2\",e=\"0\"} x\n") ==
      "line 3, column 24: the value is \"x\"; allowed: a decimal number, NaN, "
      "+Inf, -Inf");
  CHECK(refusal(start + "h_bucket{le=\"\\2\",e=\"0\"} 1\n") ==
        "line 3, column 14: the escape is \"\\2\"; allowed: \\\\, \\n and "
        "\\\"");
  Page page = tolerant(start + "h_bucket{le=\"2\",e=\"0\"} 2 5000\n");
  CHECK(page.families.at(0).series.at(0).timestamp == 5.0);
  page = tolerant(
      "h_bucket{le=\"1\",x=\"\\t\"} 1\n"
      "# TYPE h histogram\n"
      "h_bucket{le=\"2\",x=\"\\t\"} 2\n"
      "h_bucket{le=\"3\",x=\"\\t\"} 3\n");
  CHECK(counts(page.families.at(0).series.at(0)) ==
        std::vector<double>{1, 2, 3});
  // Each faulty escape, the late TYPE, no +Inf, no _count.
  CHECK(page.fault_count == 6);
}

TEST_CASE("text parser: a histogram may end in _total, a gauge in _count",
          "[exposition]") {
  const Page page = strict(
      "# TYPE steps_total histogram\n"
      "steps_total_bucket{le=\"1\"} 1\n"
      "steps_total_bucket{le=\"+Inf\"} 2\n"
      "steps_total_sum 5\n"
      "steps_total_count 2\n"
      "# TYPE steps_total_created gauge\n"
      "steps_total_created 1.7e9\n"
      "# TYPE fan_count gauge\n"
      "fan_count 6\n");
  REQUIRE(page.families.size() == 3);
  CHECK(page.families[0].series.at(0).count == 2.0);
  CHECK(page.families[1].series.at(0).value == 1.7e9);
  CHECK(page.families[2].name == "fan_count");
  CHECK(page.families[2].series.at(0).value == 6.0);
}

TEST_CASE("text parser: summaries have quantiles or none", "[exposition]") {
  const Page page = strict(
      "# TYPE s summary\n"
      "s{quantile=\"0.5\",job=\"a\"} 0.1\n"
      "s{quantile=\"0.99\",job=\"a\"} NaN\n"
      "s_sum{job=\"a\"} 12\n"
      "s_count{job=\"a\"} 3\n"
      "# TYPE empty summary\n"
      "empty_count 7\n"
      "empty_sum 8\n");
  const PageSeries& series = page.families.at(0).series.at(0);
  REQUIRE(series.quantiles.size() == 2);
  CHECK(series.quantiles[0].quantile == 0.5);
  CHECK(series.quantiles[0].value == 0.1);
  CHECK(std::isnan(series.quantiles[1].value));
  CHECK(series.count == 3.0);
  CHECK(series.sum == 12.0);
  CHECK(page.families.at(1).series.at(0).count == 7.0);
}

TEST_CASE("text parser: without a TYPE a sample is its own untyped family",
          "[exposition]") {
  const Page page = strict(
      "a_bucket{le=\"1\"} 5\n"
      "a_sum 2\n"
      "# TYPE b untyped\n"
      "b 3\n"
      "# HELP c Declared, and without a sample.\n"
      "# TYPE c gauge\n");
  REQUIRE(page.families.size() == 4);
  CHECK(page.families[0].name == "a_bucket");
  CHECK(name_of(page.families[0].kind) == "untyped");
  CHECK((page.families[0].series.at(0).labels[0] == PageLabel{"le", "1"}));
  CHECK(page.families[2].series.at(0).value == 3.0);
  CHECK(page.families[3].series.empty());
}

TEST_CASE("text parser: faults have line, column and what is allowed",
          "[exposition]") {
  const auto [text, expected] = GENERATE(table<std::string, std::string>(
      {{"a 1\n{b=\"1\"} 2\n",
        "line 2, column 1: a sample begins with the metric's name, not "
        "\"{b=\"1\"} 2\"; allowed: [a-zA-Z_:][a-zA-Z0-9_:]*"},
       {"1a 1\n",
        "line 1, column 1: a sample begins with the metric's name, not "
        "\"1a 1\"; allowed: [a-zA-Z_:][a-zA-Z0-9_:]*"},
       {"a{1b=\"\"} 1\n",
        "line 1, column 3: a label's name stands here, not \"1b=\"\"} 1\"; "
        "allowed: [a-zA-Z_][a-zA-Z0-9_]*"},
       {"a{b:c=\"\"} 1\n",
        "line 1, column 4: after label b stands \":c=\"\"} 1\"; allowed: ="},
       {"a{b=c} 1\n",
        "line 1, column 5: the value of label b begins with \"c} 1\"; allowed: "
        "\""},
       {"a{b=\"c} 1\n",
        "line 1, column 5: the value of label b has no closing quote on its "
        "line"},
       {"a{b=\"c\\\n",
        "line 1, column 5: the value of label b has no closing quote on its "
        "line"},
       {"a{b=\"c\" d=\"e\"} 1\n",
        "line 1, column 9: after the value of label b stands \"d=\"e\"} 1\"; "
        "allowed: , and }"},
       {"a{b=\"c\"\n",
        "line 1, column 8: after the value of label b stands \"\"; allowed: , "
        "and }"},
       {"a{b=\"1\",c=\"2\",b=\"3\"} 1\n",
        "line 1, column 1: label b is given twice; allowed: each name once"},
       {"a{b=\"\\t\"} 1\n",
        "line 1, column 6: the escape is \"\\t\"; allowed: \\\\, \\n and \\\""},
       {"# HELP a \\\"\n",
        "line 1, column 10: the escape is \"\\\"\"; allowed: \\\\ and \\n"},
       {"a{b=\"1\"}\n",
        "line 1, column 9: the value is \"\"; allowed: a decimal number, NaN, "
        "+Inf, -Inf"},
       {"a 1 1.5\n",
        "line 1, column 5: the timestamp is \"1.5\"; allowed: whole "
        "milliseconds since 1970"},
       {"a 1 2 3\n",
        "line 1, column 7: after value and timestamp the line ends, not "
        "\"3\""},
       {"a 1 # {} 1\n",
        "line 1, column 5: an exemplar; only OpenMetrics has them, the text "
        "format does not"},
       {"# TYPE 1a gauge\n",
        "line 1, column 8: TYPE is of \"1a\"; allowed: "
        "[a-zA-Z_:][a-zA-Z0-9_:]*"},
       {"# TYPE a info\n",
        "line 1, column 1: the type of a is \"info\"; allowed: counter, gauge, "
        "histogram, summary, and untyped"},
       {"# TYPE a gauge b\n",
        "line 1, column 16: behind the type stands \"b\""},
       {"# TYPE a gauge\n# TYPE a gauge\n",
        "line 2, column 1: a second TYPE of a; allowed: one"},
       {"# HELP a x\n# HELP a x\n",
        "line 2, column 1: a second HELP of a; allowed: one"},
       {"a 1\n# TYPE a gauge\n",
        "line 2, column 1: TYPE of a stands below its samples; allowed: above "
        "them"},
       {"a{b=\"1\",c=\"2\"} 1\na{c=\"2\",b=\"1\"} 1\n",
        "line 2, column 1: a second sample a of the same labels; allowed: one"},
       {"a{x=\"1\"} 1\nb 1\na{x=\"2\"} 1\n",
        "line 3, column 1: more of family a after other families; allowed: all "
        "its lines in one group"},
       {"a 1",
        "line 1, column 4: the page ends here; allowed: behind a line "
        "feed"},
       {"a 1\r\n",
        "line 1, column 4: a carriage return; allowed: a line feed alone"},
       {"a{b=\"\xff\"} 1\n", "line 1, column 6: not UTF-8"},
       {"# TYPE h histogram\nh 1\n",
        "line 2, column 1: sample h is none that a histogram called h has"},
       {"# TYPE h histogram\nh_bucket 1\n",
        "line 2, column 1: bucket h_bucket has no label le; allowed: "
        "le=\"NUMBER\" and le=\"+Inf\""},
       {"# TYPE h histogram\nh_bucket{le=\"NaN\"} 1\n",
        "line 2, column 1: bucket h_bucket has le=\"NaN\"; allowed: "
        "le=\"NUMBER\" and le=\"+Inf\""},
       {"# TYPE s summary\ns{quantile=\"2\"} 1\n",
        "line 2, column 1: summary s has quantile=\"2\"; allowed: 0 to 1"},
       {"# TYPE s summary\ns{quantile=\"1\"} 1\ns{quantile=\"1.0\"} 1\n",
        "line 3, column 1: a second quantile \"1.0\" of s; allowed: one"},
       {"# TYPE c counter\nc_total 1\n",
        "line 2, column 1: counter c has a sample c_total; allowed: c"}}));
  CAPTURE(text);
  CHECK(refusal(text) == expected);
  const Page page = tolerant(text);
  REQUIRE_FALSE(page.faults.empty());
  CHECK(expected.ends_with(": " + page.faults[0].message));
}

TEST_CASE("text parser: histograms that contradict themselves are faults",
          "[exposition]") {
  const auto [lines, expected] = GENERATE(table<std::string, std::string>(
      {{"h_bucket{le=\"1\"} 1\nh_count 1\nh_sum 1\n",
        "has no bucket le=\"+Inf\", which counts all"},
       {"h_bucket{le=\"1\"} 3\nh_bucket{le=\"+Inf\"} 2\nh_count 2\nh_sum 1\n",
        "is not cumulative; allowed: no bucket below the one before it"},
       {"h_bucket{le=\"1\"} NaN\nh_bucket{le=\"+Inf\"} 2\nh_count 2\nh_sum 1\n",
        "is not cumulative; allowed: no bucket below the one before it"},
       {"h_bucket{le=\"+Inf\"} -1\nh_count -1\nh_sum 1\n",
        "is not cumulative; allowed: no bucket below the one before it"},
       {"h_bucket{le=\"+Inf\"} 2\nh_count 3\nh_sum 1\n",
        "has another _count than its bucket le=\"+Inf\""},
       {"h_bucket{le=\"+Inf\"} 2\nh_sum 1\n",
        "lacks _count; a histogram has buckets, _sum and _count"},
       {"h_bucket{le=\"+Inf\"} 2\nh_count 2\n",
        "lacks _sum; a histogram has buckets, _sum and _count"},
       {"h_bucket{le=\"1\"} 1\nh_bucket{le=\"1.0\"} 1\nh_bucket{le=\"+Inf\"} "
        "2\nh_count 2\nh_sum 1\n",
        "has a bucket twice; allowed: each le once"}}));
  CAPTURE(lines);
  const std::string text = "# TYPE h histogram\n" + lines;
  CHECK(refusal(text) == "line 2, column 1: histogram h " + expected);
  const Page page = tolerant(text);
  CHECK(page.fault_count == 1);
  CHECK_FALSE(page.families.at(0).series.at(0).buckets.empty());
}

TEST_CASE("text parser: an empty page has nothing and no fault",
          "[exposition]") {
  CHECK(strict("").families.empty());
  CHECK(strict("\n \n").families.empty());
}

TEST_CASE("text parser: a page outlives its move", "[exposition]") {
  const std::string text = "a{b=\"x\\\\y\"} 1\n";
  Page first = strict(text);
  const Page second = std::move(first);
  CHECK(second.families.at(0).series.at(0).labels[0].value == "x\\y");
}

}  // namespace
}  // namespace vllm_metrics
