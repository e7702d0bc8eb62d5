#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "vllm_metrics/exposition/text_parser.h"

namespace vllm_metrics {
namespace {

Page tolerant(std::string_view text) {
  auto page = parse_page(text, {.mode = ParseOptions::Mode::kTolerant});
  REQUIRE(page.ok());
  return *std::move(page);
}

std::vector<std::string> faults(const Page& page) {
  std::vector<std::string> all;
  for (const PageFault& fault : page.faults) {
    all.push_back(std::to_string(fault.line) + ":" +
                  std::to_string(fault.column) + " " + fault.message);
  }
  return all;
}

std::vector<double> counts(const PageSeries& series) {
  std::vector<double> all;
  for (const PageBucket& bucket : series.buckets) all.push_back(bucket.count);
  return all;
}

TEST_CASE("text parser: tolerant mode keeps what it can of a faulty page",
          "[exposition]") {
  const Page page = tolerant(
      "a{x=\"\\t\"} 1\r\n"
      "nonsense here\n"
      "a{x=\"2\"} 2 # {trace=\"abc\"} 0.5\n"
      "# TYPE b weird\n"
      "b 3\n"
      "a{x=\"2\"} 9\n"
      "a{x=\"3\"} 4");
  CHECK(page.fault_count == 9);
  CHECK(page.faults.size() == 9);
  const PageFamily* a = page.find("a");
  REQUIRE(a != nullptr);
  REQUIRE(a->series.size() == 3);
  CHECK(a->series[0].labels[0].value == "\\t");
  CHECK(a->series[1].value == 2.0);  // the first of two
  CHECK(a->series[2].value == 4.0);
  REQUIRE(page.find("b") != nullptr);
  CHECK(name_of(page.find("b")->kind) == "untyped");
}

TEST_CASE("text parser: tolerant mode sorts samples above their TYPE",
          "[exposition]") {
  const Page page = tolerant(
      "h_sum 4\n"
      "h_bucket{le=\"1\"} 2\n"
      "h_bucket{le=\"+Inf\"} 3\n"
      "s{quantile=\"0.5\"} 7\n"
      "# TYPE h histogram\n"
      "h_count 3\n"
      "# TYPE s summary\n"
      "s_count 1\n");
  CHECK(faults(page) ==
        std::vector<std::string>{
            "5:1 TYPE of h stands below its samples; allowed: above them",
            "7:1 TYPE of s stands below its samples; allowed: above them"});
  REQUIRE(page.families.size() == 2);
  const PageFamily* h = page.find("h");
  REQUIRE(h != nullptr);
  REQUIRE(h->series.size() == 1);
  CHECK(counts(h->series[0]) == std::vector<double>{2, 3});
  CHECK(h->series[0].sum == 4.0);
  CHECK(h->series[0].count == 3.0);
  const PageFamily* s = page.find("s");
  REQUIRE(s != nullptr);
  CHECK(s->series.at(0).quantiles.at(0).value == 7.0);
  CHECK(s->series[0].count == 1.0);
}

TEST_CASE("text parser: bytes that are not UTF-8 become U+FFFD",
          "[exposition]") {
  const Page page = tolerant("a{b=\"x\xff\"} 1\na{b=\"\xc3\xa9\"} 2\n");
  CHECK(page.fault_count == 1);
  CHECK(page.families.at(0).series.at(0).labels[0].value == "x\xEF\xBF\xBD");
  CHECK(page.families[0].series.at(1).labels[0].value == "\xc3\xa9");
}

TEST_CASE("text parser: faults are kept up to a limit and all are counted",
          "[exposition]") {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "?\n";
  text += "a 1\n";
  const Page page = tolerant(text);
  CHECK(page.fault_count == 1000);
  CHECK(page.faults.size() == Page::kMaxFaults);
  CHECK(page.find("a") != nullptr);
}

}  // namespace
}  // namespace vllm_metrics
