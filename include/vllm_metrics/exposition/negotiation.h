#pragma once

#include <string_view>

#include "vllm_metrics/export.h"

namespace vllm_metrics::inline v0 {

// The formats of a page, in the order of preference where a client has none.
enum class WireFormat {
  kText,         // text 0.0.4, what everybody reads
  kText1,        // text 1.0.0: the same body, sent to who names it
  kOpenMetrics,  // OpenMetrics 1.0.0
  kProtobuf,     // io.prometheus.client.MetricFamily, delimited
};

// What a server can write beside text and OpenMetrics.
struct WireFormatsOffered {
  bool protobuf = false;
};

// What a client gets: a format, and the `Content-Type` that belongs to it.
struct WireFormatChoice {
  WireFormat format = WireFormat::kText;
  std::string_view content_type = {};  // ends in a null character
};

// The format that an `Accept` header asks for, by its q-values; among equals
// the one that is named most precisely, then first. Text 1.0.0 and protobuf are
// only for clients that name them in full; `escaping` changes nothing, since
// all names here are of the old alphabet. Other parameters are ignored.
//
// A header that is empty, malformed, or accepts nothing that is offered gets
// text 0.0.4, never a refusal (406): that is what Prometheus's clients do, and
// scrapers read it whatever they ask for.
//
// For any HTTP server. Several headers of the name: joined by commas. At most
// the first 64 ranges are looked at; no allocation.
// Thread-safety: a function of its arguments. Errors: none.
// Definition: RFC 9110, section 12.5.1; "Content negotiation" of Prometheus.
VLLM_METRICS_EXPORT WireFormatChoice
choose_wire_format(std::string_view accept, WireFormatsOffered offered = {});

// Whether an `Accept-Encoding` header asks for gzip (or x-gzip, or `*`), at
// least as much as for the plain page. RFC 9110, section 12.5.3.
VLLM_METRICS_EXPORT bool accepts_gzip(std::string_view accept_encoding);

}  // namespace vllm_metrics::inline v0
