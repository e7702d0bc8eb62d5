#include "src/otlp/json_line.h"

#include <catch2/catch.hpp>
#include <limits>
#include <protozero/pbf_writer.hpp>
#include <string>

#include "src/otlp/message_parts.h"

namespace vllm_metrics::otlp {
namespace {

// A request of one metric that is a gauge, whose points `fill` writes.
template <class Fill>
std::string gauge_line(Fill fill) {
  std::string bytes;
  protozero::pbf_writer request(bytes);
  {
    protozero::pbf_writer resource_metrics(request, 1);
    protozero::pbf_writer scope_metrics(resource_metrics, 2);
    protozero::pbf_writer metric(scope_metrics, 2);
    protozero::pbf_writer gauge(metric, 5);
    fill(gauge);
  }
  return json_line(Signal::kMetrics, bytes);
}

std::string in_gauge(const std::string& points) {
  return "{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{\"gauge\":{"
         "\"dataPoints\":[" +
         points + "]}}]}]}]}";
}

TEST_CASE("json_line: numbers are ProtoJSON's", "[otlp]") {
  const auto point = [](auto add) {
    return gauge_line([&](protozero::pbf_writer& gauge) {
      protozero::pbf_writer message(gauge, 1);
      add(message);
    });
  };
  const auto real = [&](double value) {
    return point([&](auto& p) { p.add_double(4, value); });
  };
  CHECK(real(0.1) == in_gauge("{\"asDouble\":0.1}"));
  CHECK(real(1e300) == in_gauge("{\"asDouble\":1e+300}"));
  CHECK(real(-0.0) == in_gauge("{\"asDouble\":-0}"));
  CHECK(real(std::numeric_limits<double>::quiet_NaN()) ==
        in_gauge("{\"asDouble\":\"NaN\"}"));
  CHECK(real(std::numeric_limits<double>::infinity()) ==
        in_gauge("{\"asDouble\":\"Infinity\"}"));
  CHECK(real(-std::numeric_limits<double>::infinity()) ==
        in_gauge("{\"asDouble\":\"-Infinity\"}"));
  CHECK(point([](auto& p) {
          p.add_sfixed64(6, std::numeric_limits<std::int64_t>::min());
        }) == in_gauge("{\"asInt\":\"-9223372036854775808\"}"));
  CHECK(point([](auto& p) {
          p.add_fixed64(3, std::numeric_limits<std::uint64_t>::max());
        }) == in_gauge("{\"timeUnixNano\":\"18446744073709551615\"}"));
}

TEST_CASE("json_line: text of any kind is JSON", "[otlp]") {
  CHECK(gauge_line([](protozero::pbf_writer& gauge) {
          protozero::pbf_writer point(gauge, 1);
          add_attribute(point, 7, "a", "\"\\\n\x01\x1f\xc3\xa9\xff");
          add_attribute(point, 7, "b", "");
        }) == in_gauge("{\"attributes\":[{\"key\":\"a\",\"value\":{"
                       "\"stringValue\":\"\\\"\\\\\\u000a\\u0001\\u001f\xc3\xa9"
                       "\xef\xbf\xbd\"}},{\"key\":\"b\",\"value\":{"
                       "\"stringValue\":\"\"}}]}"));
}

TEST_CASE("json_line: a list is one, wherever its entries are", "[otlp]") {
  std::string bytes;
  protozero::pbf_writer request(bytes);
  {
    protozero::pbf_writer resource_spans(request, 1);
    protozero::pbf_writer scope_spans(resource_spans, 2);
    protozero::pbf_writer span(scope_spans, 2);
    add_attribute(span, 9, "a", "1");
    {
      protozero::pbf_writer event(span, 11);
      event.add_fixed64(1, 5);
      add_text(event, 2, "e");
    }
    add_attribute(span, 9, "b", "2");
    span.add_uint32(12, std::numeric_limits<std::uint32_t>::max());
  }
  CHECK(json_line(Signal::kTraces, bytes) ==
        "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{"
        "\"attributes\":[{\"key\":\"a\",\"value\":{\"stringValue\":\"1\"}},"
        "{\"key\":\"b\",\"value\":{\"stringValue\":\"2\"}}],"
        "\"events\":[{\"timeUnixNano\":\"5\",\"name\":\"e\"}],"
        "\"droppedEventsCount\":4294967295}]}]}]}");
}

TEST_CASE("json_line: what it does not know it leaves out", "[otlp]") {
  CHECK(gauge_line([](protozero::pbf_writer& gauge) {
          {
            protozero::pbf_writer first(gauge, 1);
            first.add_uint32(999, 1);
          }
          protozero::pbf_writer second(gauge, 1);
          second.add_double(4, 0.5);
          second.add_uint32(999, 1);
        }) == in_gauge("{},{\"asDouble\":0.5}"));
  CHECK(json_line(Signal::kTraces, "") == "{}");
}

}  // namespace
}  // namespace vllm_metrics::otlp
