#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace vllm_metrics::inline v0::otlp {

// What our messages have of OpenTelemetry's schema: numbers, by which they are
// written, and names, which JSON has.
// Definition: opentelemetry/proto/{common,resource,metrics,trace}/v1.

// How a field is read, and so how it is written.
enum class As {
  kMessage,
  kMessages,  // repeated
  kText,
  kId,       // bytes, in hex
  kFixed64,  // as text, like all integers of 64 bits
  kSigned64,
  kInt64,
  kDouble,
  kSint32,
  kEnum,
  kUint32,
  kBool,
  kFixed64s,
  kUint64s,
  kDoubles,
};

struct Field;

class Message {
 public:
  constexpr Message() = default;
  template <std::size_t N>
  constexpr Message(const Field (&fields)[N])
      : begin_(fields), end_(fields + N) {}
  constexpr const Field* begin() const { return begin_; }
  constexpr const Field* end() const { return end_; }

 private:
  const Field* begin_ = nullptr;
  const Field* end_ = nullptr;
};

struct Field {
  std::uint32_t number;
  std::string_view name;
  As as;
  Message message = {};
};

// AnyValue: attributes are one of these, or a list of them.
inline constexpr Field kScalar[] = {
    {1, "stringValue", As::kText},
    {2, "boolValue", As::kBool},
    {3, "intValue", As::kInt64},
    {4, "doubleValue", As::kDouble},
};
inline constexpr Field kArray[] = {
    {1, "values", As::kMessages, kScalar},
};
inline constexpr Field kAnyValue[] = {
    {1, "stringValue", As::kText},
    {2, "boolValue", As::kBool},
    {3, "intValue", As::kInt64},
    {4, "doubleValue", As::kDouble},
    {5, "arrayValue", As::kMessage, kArray},
};
inline constexpr Field kKeyValue[] = {
    {1, "key", As::kText},
    {2, "value", As::kMessage, kAnyValue},
};
inline constexpr Field kResource[] = {
    {1, "attributes", As::kMessages, kKeyValue},
};
inline constexpr Field kScope[] = {
    {1, "name", As::kText},
    {2, "version", As::kText},
};

inline constexpr Field kExemplar[] = {
    {2, "timeUnixNano", As::kFixed64},
    {3, "asDouble", As::kDouble},
    {4, "spanId", As::kId},
    {5, "traceId", As::kId},
    {7, "filteredAttributes", As::kMessages, kKeyValue},
};
inline constexpr Field kNumberPoint[] = {
    {2, "startTimeUnixNano", As::kFixed64},
    {3, "timeUnixNano", As::kFixed64},
    {4, "asDouble", As::kDouble},
    {6, "asInt", As::kSigned64},
    {7, "attributes", As::kMessages, kKeyValue},
};
inline constexpr Field kHistogramPoint[] = {
    {2, "startTimeUnixNano", As::kFixed64},
    {3, "timeUnixNano", As::kFixed64},
    {4, "count", As::kFixed64},
    {5, "sum", As::kDouble},
    {6, "bucketCounts", As::kFixed64s},
    {7, "explicitBounds", As::kDoubles},
    {8, "exemplars", As::kMessages, kExemplar},
    {9, "attributes", As::kMessages, kKeyValue},
};
inline constexpr Field kBuckets[] = {
    {1, "offset", As::kSint32},
    {2, "bucketCounts", As::kUint64s},
};
inline constexpr Field kExponentialPoint[] = {
    {1, "attributes", As::kMessages, kKeyValue},
    {2, "startTimeUnixNano", As::kFixed64},
    {3, "timeUnixNano", As::kFixed64},
    {4, "count", As::kFixed64},
    {5, "sum", As::kDouble},
    {6, "scale", As::kSint32},
    {7, "zeroCount", As::kFixed64},
    {8, "positive", As::kMessage, kBuckets},
    {11, "exemplars", As::kMessages, kExemplar},
    {14, "zeroThreshold", As::kDouble},
};
inline constexpr Field kGauge[] = {
    {1, "dataPoints", As::kMessages, kNumberPoint},
};
inline constexpr Field kSum[] = {
    {1, "dataPoints", As::kMessages, kNumberPoint},
    {2, "aggregationTemporality", As::kEnum},
    {3, "isMonotonic", As::kBool},
};
inline constexpr Field kHistogram[] = {
    {1, "dataPoints", As::kMessages, kHistogramPoint},
    {2, "aggregationTemporality", As::kEnum},
};
inline constexpr Field kExponential[] = {
    {1, "dataPoints", As::kMessages, kExponentialPoint},
    {2, "aggregationTemporality", As::kEnum},
};
inline constexpr Field kMetric[] = {
    {1, "name", As::kText},
    {2, "description", As::kText},
    {3, "unit", As::kText},
    {5, "gauge", As::kMessage, kGauge},
    {7, "sum", As::kMessage, kSum},
    {9, "histogram", As::kMessage, kHistogram},
    {10, "exponentialHistogram", As::kMessage, kExponential},
};
inline constexpr Field kScopeMetrics[] = {
    {1, "scope", As::kMessage, kScope},
    {2, "metrics", As::kMessages, kMetric},
};
inline constexpr Field kResourceMetrics[] = {
    {1, "resource", As::kMessage, kResource},
    {2, "scopeMetrics", As::kMessages, kScopeMetrics},
};
inline constexpr Field kMetricsRequest[] = {
    {1, "resourceMetrics", As::kMessages, kResourceMetrics},
};

inline constexpr Field kEvent[] = {
    {1, "timeUnixNano", As::kFixed64},
    {2, "name", As::kText},
    {3, "attributes", As::kMessages, kKeyValue},
};
inline constexpr Field kStatus[] = {
    {2, "message", As::kText},
    {3, "code", As::kEnum},
};
inline constexpr Field kSpan[] = {
    {1, "traceId", As::kId},
    {2, "spanId", As::kId},
    {3, "traceState", As::kText},
    {4, "parentSpanId", As::kId},
    {5, "name", As::kText},
    {6, "kind", As::kEnum},
    {7, "startTimeUnixNano", As::kFixed64},
    {8, "endTimeUnixNano", As::kFixed64},
    {9, "attributes", As::kMessages, kKeyValue},
    {11, "events", As::kMessages, kEvent},
    {12, "droppedEventsCount", As::kUint32},
    {15, "status", As::kMessage, kStatus},
};
inline constexpr Field kScopeSpans[] = {
    {1, "scope", As::kMessage, kScope},
    {2, "spans", As::kMessages, kSpan},
};
inline constexpr Field kResourceSpans[] = {
    {1, "resource", As::kMessage, kResource},
    {2, "scopeSpans", As::kMessages, kScopeSpans},
};
inline constexpr Field kTraceRequest[] = {
    {1, "resourceSpans", As::kMessages, kResourceSpans},
};

}  // namespace vllm_metrics::inline v0::otlp
