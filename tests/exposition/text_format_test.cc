#include "vllm_metrics/exposition/text_format.h"

#include <catch2/catch.hpp>
#include <clocale>
#include <limits>
#include <locale>
#include <memory>
#include <string>
#include <vector>

#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics {
namespace {

std::string page(const Registry& registry, TextFormatOptions options = {}) {
  return std::string(TextFormat(options).render(registry));
}

TEST_CASE("text format: quote, backslash and line feed are escaped",
          "[exposition]") {
  const auto registry = Registry::create();
  const auto gauge =
      registry->add_gauge({.name = "m", .help = "path \"x\"\\y\nz"},
                          {{"model_name", "a\"b\\c\nd"}});
  REQUIRE(gauge.ok());
  (*gauge)->set(1);
  CHECK(page(*registry) ==
        "# HELP m path \"x\"\\\\y\\nz\n"
        "# TYPE m gauge\n"
        "m{model_name=\"a\\\"b\\\\c\\nd\"} 1.0\n");
}

TEST_CASE("text format: bounds are spelled as floats, +Inf last",
          "[exposition]") {
  const auto registry = Registry::create();
  const double bounds[] = {1, 2.5, 8, 500000, 1000000};
  const auto h = registry->add_histogram({.name = "h", .help = "x"}, bounds);
  REQUIRE(h.ok());
  (*h)->observe(1);
  CHECK(page(*registry) ==
        "# HELP h x\n"
        "# TYPE h histogram\n"
        "h_bucket{le=\"1.0\"} 1.0\n"
        "h_bucket{le=\"2.5\"} 1.0\n"
        "h_bucket{le=\"8.0\"} 1.0\n"
        "h_bucket{le=\"500000.0\"} 1.0\n"
        "h_bucket{le=\"1e+06\"} 1.0\n"
        "h_bucket{le=\"+Inf\"} 1.0\n"
        "h_count 1.0\n"
        "h_sum 1.0\n");
}

TEST_CASE("text format: exponents of ten and more have two digits",
          "[exposition]") {
  const auto registry = Registry::create();
  const double bounds[] = {1e9, 1e10};
  const auto h = registry->add_histogram({.name = "h", .help = "x"}, bounds);
  REQUIRE(h.ok());
  const std::string text = page(*registry);
  CHECK(text.find("le=\"1e+09\"") != std::string::npos);
  CHECK(text.find("le=\"1e+10\"") != std::string::npos);
}

TEST_CASE("text format: labels are sorted and le takes its place among them",
          "[exposition]") {
  const auto registry = Registry::create();
  const double bounds[] = {1};
  const auto h = registry->add_histogram({.name = "h", .help = "x"}, bounds,
                                         {{"zone", "z"}, {"engine", "0"}});
  REQUIRE(h.ok());
  CHECK(page(*registry).find(
            "h_bucket{engine=\"0\",le=\"1.0\",zone=\"z\"} 0.0\n") !=
        std::string::npos);
}

TEST_CASE("text format: series of equal bounds have the same le",
          "[exposition]") {
  const auto registry = Registry::create();
  const double bounds[] = {0.25, 1e10};
  const double longer[] = {0.25, 1e10, 1.2345678901234567e+300};
  const auto a = registry->add_histogram({.name = "a"}, bounds);
  const auto b = registry->add_histogram({.name = "b"}, bounds, {{"z", "1"}});
  const auto c = registry->add_histogram({.name = "c"}, longer);
  REQUIRE((a.ok() && b.ok() && c.ok()));
  (*b)->observe(1);
  (*b)->observe(2e10);
  CHECK(page(*registry) ==
        "# HELP a \n# TYPE a histogram\n"
        "a_bucket{le=\"0.25\"} 0.0\n"
        "a_bucket{le=\"1e+10\"} 0.0\n"
        "a_bucket{le=\"+Inf\"} 0.0\n"
        "a_count 0.0\n"
        "a_sum 0.0\n"
        "# HELP b \n# TYPE b histogram\n"
        "b_bucket{le=\"0.25\",z=\"1\"} 0.0\n"
        "b_bucket{le=\"1e+10\",z=\"1\"} 1.0\n"
        "b_bucket{le=\"+Inf\",z=\"1\"} 2.0\n"
        "b_count{z=\"1\"} 2.0\n"
        "b_sum{z=\"1\"} 2.0000000001e+10\n"
        "# HELP c \n# TYPE c histogram\n"
        "c_bucket{le=\"0.25\"} 0.0\n"
        "c_bucket{le=\"1e+10\"} 0.0\n"
        "c_bucket{le=\"1.2345678901234567e+300\"} 0.0\n"
        "c_bucket{le=\"+Inf\"} 0.0\n"
        "c_count 0.0\n"
        "c_sum 0.0\n");
}

TEST_CASE("text format: values that are no number have one spelling",
          "[exposition]") {
  const auto registry = Registry::create();
  std::vector<Handle<Gauge>> gauges;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  for (const double v : {-nan, nan, inf, -inf}) {
    auto gauge = registry->add_gauge({.name = "g", .help = "x"},
                                     {{"n", std::to_string(gauges.size())}});
    REQUIRE(gauge.ok());
    (*gauge)->set(v);
    gauges.push_back(*gauge);
  }
  CHECK(page(*registry) ==
        "# HELP g x\n# TYPE g gauge\n"
        "g{n=\"0\"} NaN\ng{n=\"1\"} NaN\ng{n=\"2\"} +Inf\ng{n=\"3\"} -Inf\n");
}

struct CommaDecimal : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST_CASE("text format: the process locale changes nothing", "[exposition]") {
  const auto registry = Registry::create();
  const double bounds[] = {0.5, 1234.5};
  const auto h = registry->add_histogram({.name = "h", .help = "x"}, bounds);
  REQUIRE(h.ok());
  (*h)->observe(1000.25);
  const std::string before = page(*registry);

  const std::locale old = std::locale::global(
      std::locale(std::locale::classic(), new CommaDecimal));
  const std::string c_old = std::setlocale(LC_ALL, nullptr);
  std::setlocale(LC_ALL, "de_DE.UTF-8");
  const std::string foreign = page(*registry);
  const double bad[] = {0.06, 0.04};
  const auto refused =
      registry->add_histogram({.name = "bad", .help = "x"}, bad);
  std::setlocale(LC_ALL, c_old.c_str());
  std::locale::global(old);

  CHECK(foreign == before);
  CHECK(before.find("h_sum 1000.25\n") != std::string::npos);
  CHECK(refused.status().message() ==
        "family bad: bounds[1] = 0.04 is not above bounds[0] = 0.06");
}

TEST_CASE("text format: _created is off by default and one option turns it on",
          "[exposition]") {
  const auto registry = Registry::create();
  const double bounds[] = {1};
  const auto c = registry->add_counter({.name = "c_total", .help = "x"});
  const auto g = registry->add_gauge({.name = "g", .help = "x"});
  const auto h = registry->add_histogram({.name = "h", .help = "x"}, bounds);
  REQUIRE((c.ok() && g.ok() && h.ok()));
  CHECK(page(*registry).find("_created") == std::string::npos);

  const std::string with = page(*registry, {.created_series = true});
  const auto number_after = [&](const std::string& line_start) {
    const auto at = with.find("\n" + line_start);
    REQUIRE(at != std::string::npos);
    return std::stod(with.substr(at + 1 + line_start.size()));
  };
  CHECK(with.find("# TYPE c_total counter\nc_total 0.0\n# HELP c_created x\n"
                  "# TYPE c_created gauge\nc_created ") != std::string::npos);
  CHECK(with.find("# TYPE h_created gauge\n") != std::string::npos);
  CHECK(with.find("g_created") == std::string::npos);
  CHECK(number_after("c_created ") > 1.6e9);

  std::string without;
  for (std::size_t at = 0; at < with.size();) {
    const auto end = with.find('\n', at) + 1;
    const auto line = with.substr(at, end - at);
    if (line.find("_created") == std::string::npos) without += line;
    at = end;
  }
  CHECK(without == page(*registry));
}

TEST_CASE("text format: the same state twice is the same page",
          "[exposition]") {
  const auto registry = Registry::create();
  const auto c = registry->add_counter({.name = "c", .help = "x"});
  REQUIRE(c.ok());
  (*c)->inc(3);
  TextFormat format;
  const std::string first(format.render(*registry));
  CHECK(format.render(*registry) == first);

  SECTION("and a series more or less is seen at once") {
    const auto d = registry->add_counter({.name = "d", .help = "y"});
    REQUIRE(d.ok());
    CHECK(format.render(*registry) ==
          first + "# HELP d_total y\n# TYPE d_total counter\nd_total 0.0\n");
  }
  CHECK(format.render(*registry) == first);
}

TEST_CASE("text format: nothing registered is an empty page", "[exposition]") {
  CHECK(page(*Registry::create()).empty());
  CHECK(TextFormat().render(Snapshot()).empty());
}

}  // namespace
}  // namespace vllm_metrics
