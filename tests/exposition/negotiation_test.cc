#include "vllm_metrics/exposition/negotiation.h"

#include <catch2/catch.hpp>
#include <string>
#include <string_view>

namespace vllm_metrics {
namespace {

constexpr std::string_view kText = "text/plain; version=0.0.4; charset=utf-8";
constexpr std::string_view kText1 = "text/plain; version=1.0.0; charset=utf-8";
constexpr std::string_view kOpenMetrics =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";
constexpr std::string_view kProtobuf =
    "application/vnd.google.protobuf; "
    "proto=io.prometheus.client.MetricFamily; encoding=delimited";

struct Row {
  std::string accept;
  std::string_view content_type;
};

void check(const Row& row, WireFormatsOffered offered = {}) {
  INFO("Accept: " << row.accept.substr(0, 200));
  const WireFormatChoice choice = choose_wire_format(row.accept, offered);
  CHECK(choice.content_type == row.content_type);
  const WireFormat format = row.content_type == kText    ? WireFormat::kText
                            : row.content_type == kText1 ? WireFormat::kText1
                            : row.content_type == kOpenMetrics
                                ? WireFormat::kOpenMetrics
                                : WireFormat::kProtobuf;
  CHECK(choice.format == format);
}

TEST_CASE("choose_wire_format: each release of Prometheus gets what it wants",
          "[exposition]") {
  const Row rows[] = {
      // 2.42
      {"application/openmetrics-text;version=1.0.0,"
       "application/openmetrics-text;version=0.0.1;q=0.75,"
       "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
       kOpenMetrics},
      // 2.50 and later
      {"application/openmetrics-text;version=1.0.0;q=0.5,"
       "application/openmetrics-text;version=0.0.1;q=0.4,"
       "text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
       kOpenMetrics},
      // 3.x
      {"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
       "application/openmetrics-text;version=0.0.1;q=0.4,"
       "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,"
       "text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
       kOpenMetrics},
      // 3.x with `scrape_protocols: [PrometheusText1.0.0, ...]`
      {"text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
       "text/plain;version=0.0.4;q=0.3,*/*;q=0.1",
       kText1},
      {"text/plain;version=0.0.4;q=0.3,*/*;q=0.1", kText},
  };
  for (const Row& row : rows) check(row);
}

TEST_CASE("choose_wire_format: protobuf only where there is a writer",
          "[exposition]") {
  const std::string accept =
      "application/vnd.google.protobuf;"
      "proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,"
      "application/openmetrics-text;version=1.0.0;q=0.5,"
      "text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
  check({accept, kOpenMetrics});
  check({accept, kProtobuf}, {.protobuf = true});
  check({"application/vnd.google.protobuf", kText}, {.protobuf = true});
  check({"application/vnd.google.protobuf;"
         "proto=io.prometheus.client.MetricFamily;encoding=text",
         kText},
        {.protobuf = true});
  check({"*/*", kText}, {.protobuf = true});
}

TEST_CASE("choose_wire_format: without a usable header it is text 0.0.4",
          "[exposition]") {
  for (const std::string& accept :
       {std::string(), std::string("*/*"), std::string("application/json"),
        std::string("text/html"), std::string("text/*"),
        std::string("text/plain"), std::string(";;;=,,\"\\"),
        std::string(8192, ','), std::string(100000, ';'),
        std::string("text/plain;version=9"),
        std::string("application/openmetrics-text;version=9.9.9"),
        std::string("application/openmetrics-text;version=1.0.0;q=0"),
        std::string("application/openmetrics-text;version=1.0.0;q=2"),
        std::string("application/openmetrics-text;version=1.0.0;q=0.1x"),
        std::string("text/plain;q=0, */*;q=0")}) {
    check({accept, kText});
  }
}

TEST_CASE(
    "choose_wire_format: the most precise range decides, then q, then "
    "the order",
    "[exposition]") {
  const Row rows[] = {
      {"application/openmetrics-text", kOpenMetrics},
      {"application/*", kOpenMetrics},
      {"APPLICATION/OpenMetrics-Text ; VERSION=\"1.0.0\" ; Q=0.9",
       kOpenMetrics},
      {"text/plain;q=0.9, application/openmetrics-text;q=0.901", kOpenMetrics},
      {"text/plain, application/openmetrics-text", kText},
      {"application/openmetrics-text, text/plain", kOpenMetrics},
      {"application/openmetrics-text;version=1.0.0;q=0, */*", kText},
      {"text/plain;q=0, */*;q=0.1", kOpenMetrics},
      {"*/*, application/openmetrics-text;q=0.5", kText},
      {"text/plain;version=1.0.0", kText1},
      {"text/plain;version=1.0.0;charset=utf-8", kText1},
      {"application/openmetrics-text;a=\",q=0;\";q=0.5, text/plain;q=0.4",
       kOpenMetrics},
  };
  for (const Row& row : rows) check(row);
}

TEST_CASE("choose_wire_format: ranges behind the 64th are not looked at",
          "[exposition]") {
  const std::string wanted = "application/openmetrics-text";
  check({std::string(63, ',') + wanted, kOpenMetrics});
  check({std::string(64, ',') + wanted, kText});
}

TEST_CASE("accepts_gzip: gzip is wanted with a q above zero", "[exposition]") {
  for (const char* header :
       {"gzip", "GZIP", "x-gzip", "deflate, gzip;q=1.0, *;q=0.5", "*",
        "gzip;q=0.001", "identity;q=0.5, gzip", "br, gzip"}) {
    INFO(header);
    CHECK(accepts_gzip(header));
  }
  for (const char* header :
       {"", "identity", "gzip;q=0", "gzip;q=0, identity", "gzip;q=0, *",
        "gzip;q=0.000", "*;q=0", "deflate", "gzip;q=x", "gzip2",
        "gzip;q=0.5, identity;q=0.9", ",,,;;=\""}) {
    INFO(header);
    CHECK_FALSE(accepts_gzip(header));
  }
}

}  // namespace
}  // namespace vllm_metrics
