#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <utility>
#include <vector>

#include "vllm_metrics/otlp/transport.h"

namespace vllm_metrics::testing {

// What a collector sees. Of OpenTelemetry's schema only what the tests look at;
// the whole one is held by another test, in Python.
struct ReceivedExemplar {
  std::uint64_t time = 0;
  double value = 0.0;
  std::string span_id = {};   // bytes
  std::string trace_id = {};  // bytes
  std::map<std::string, std::string> attributes = {};
};

struct Point {
  std::map<std::string, std::string> attributes = {};
  std::uint64_t start = 0;
  std::uint64_t time = 0;
  double real = 0.0;         // of a number
  std::int64_t integer = 0;  // of a number
  bool is_integer = false;   // which of the two
  std::uint64_t count = 0;   // of a histogram
  double sum = 0.0;          // of a histogram
  std::vector<std::uint64_t> buckets = {};
  std::vector<double> bounds = {};
  std::int32_t scale = 0;
  std::int32_t offset = 0;
  std::uint64_t zeros = 0;
  double zero_threshold = 0.0;
  std::vector<ReceivedExemplar> exemplars = {};
};

struct Metric {
  std::string name = {};
  std::string unit = {};
  std::string kind = {};
  int temporality = 0;  // 1: delta, 2: cumulative
  bool monotonic = false;
  std::vector<Point> points = {};
};

struct Received {
  std::map<std::string, std::string> resource = {};
  std::map<std::string, Metric> metrics = {};
};

inline void read_attribute(protozero::pbf_reader pair,
                           std::map<std::string, std::string>& out) {
  std::string key;
  std::string value;
  while (pair.next()) {
    if (pair.tag() == 1) {
      key = pair.get_string();
    } else {
      protozero::pbf_reader any = pair.get_message();
      while (any.next()) value = any.get_string();
    }
  }
  out[key] = value;
}

inline ReceivedExemplar read_exemplar(protozero::pbf_reader message) {
  ReceivedExemplar exemplar;
  while (message.next()) {
    switch (message.tag()) {
      case 2:
        exemplar.time = message.get_fixed64();
        break;
      case 3:
        exemplar.value = message.get_double();
        break;
      case 4:
        exemplar.span_id = message.get_string();
        break;
      case 5:
        exemplar.trace_id = message.get_string();
        break;
      case 7:
        read_attribute(message.get_message(), exemplar.attributes);
        break;
      default:
        message.skip();
    }
  }
  return exemplar;
}

// One field of the value of a point; the kinds have theirs by other numbers.
inline void read_number(protozero::pbf_reader& data, Point& point) {
  switch (data.tag()) {
    case 4:
      point.real = data.get_double();
      break;
    case 6:
      point.integer = data.get_sfixed64();
      point.is_integer = true;
      break;
    default:
      data.skip();
  }
}

inline void read_explicit(protozero::pbf_reader& data, Point& point) {
  switch (data.tag()) {
    case 6:
      for (const auto count : data.get_packed_fixed64())
        point.buckets.push_back(count);
      break;
    case 7:
      for (const auto bound : data.get_packed_double())
        point.bounds.push_back(bound);
      break;
    case 8:
      point.exemplars.push_back(read_exemplar(data.get_message()));
      break;
    default:
      data.skip();
  }
}

inline void read_buckets(protozero::pbf_reader buckets, Point& point) {
  while (buckets.next()) {
    if (buckets.tag() == 1) {
      point.offset = buckets.get_sint32();
    } else {
      for (const auto count : buckets.get_packed_uint64())
        point.buckets.push_back(count);
    }
  }
}

inline void read_exponential(protozero::pbf_reader& data, Point& point) {
  switch (data.tag()) {
    case 6:
      point.scale = data.get_sint32();
      break;
    case 7:
      point.zeros = data.get_fixed64();
      break;
    case 8:
      read_buckets(data.get_message(), point);
      break;
    case 11:
      point.exemplars.push_back(read_exemplar(data.get_message()));
      break;
    case 14:
      point.zero_threshold = data.get_double();
      break;
    default:
      data.skip();
  }
}

// `kind` is the field of the metric that the point is in.
inline Point read_point(protozero::pbf_reader data, std::uint32_t kind) {
  const bool is_histogram = kind == 9 || kind == 10;
  const std::uint32_t attributes = kind == 9 ? 9 : kind == 10 ? 1 : 7;
  Point point;
  while (data.next()) {
    if (data.tag() == attributes) {
      read_attribute(data.get_message(), point.attributes);
    } else if (data.tag() == 2) {
      point.start = data.get_fixed64();
    } else if (data.tag() == 3) {
      point.time = data.get_fixed64();
    } else if (is_histogram && data.tag() == 4) {
      point.count = data.get_fixed64();
    } else if (is_histogram && data.tag() == 5) {
      point.sum = data.get_double();
    } else if (kind == 9) {
      read_explicit(data, point);
    } else if (kind == 10) {
      read_exponential(data, point);
    } else {
      read_number(data, point);
    }
  }
  return point;
}

inline Metric read_metric(protozero::pbf_reader message) {
  Metric metric;
  while (message.next()) {
    const auto kind = message.tag();
    if (kind == 1 || kind == 2 || kind == 3) {
      const std::string text = message.get_string();
      if (kind == 1) metric.name = text;
      if (kind == 3) metric.unit = text;
      continue;
    }
    metric.kind = kind == 5   ? "gauge"
                  : kind == 7 ? "sum"
                  : kind == 9 ? "histogram"
                              : "exponential";
    protozero::pbf_reader data = message.get_message();
    while (data.next()) {
      switch (data.tag()) {
        case 1:
          metric.points.push_back(read_point(data.get_message(), kind));
          break;
        case 2:
          metric.temporality = data.get_enum();
          break;
        default:
          metric.monotonic = data.get_bool();
      }
    }
  }
  return metric;
}

inline Received read_request(const std::string& bytes) {
  Received received;
  protozero::pbf_reader request(bytes);
  while (request.next(1)) {
    protozero::pbf_reader resource_metrics = request.get_message();
    while (resource_metrics.next()) {
      const bool is_resource = resource_metrics.tag() == 1;
      protozero::pbf_reader part = resource_metrics.get_message();
      while (part.next()) {
        if (is_resource) {
          read_attribute(part.get_message(), received.resource);
        } else if (part.tag() == 2) {
          Metric metric = read_metric(part.get_message());
          received.metrics[metric.name] = std::move(metric);
        } else {
          part.skip();
        }
      }
    }
  }
  return received;
}

// A collector that answers as told, then with 200.
class ScriptedTransport final : public otlp::Transport {
 public:
  otlp::Response send(const otlp::Request& request) override {
    bodies.emplace_back(request.body);
    headers = request.headers;
    url = std::string(request.url);
    if (on_send) on_send();
    if (answers.empty()) return {.status = 200};
    const otlp::Response answer = answers.front();
    answers.pop_front();
    return answer;
  }

  std::deque<otlp::Response> answers;
  std::vector<std::string> bodies;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string url;
  std::function<void()> on_send;
};

}  // namespace vllm_metrics::testing
