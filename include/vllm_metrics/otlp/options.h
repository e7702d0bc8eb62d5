#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vllm_metrics/loggers/clock.h"
#include "vllm_metrics/loggers/log_sink.h"
#include "vllm_metrics/otlp/transport.h"

namespace vllm_metrics::inline v0::otlp {

// Whether a point says what happened since the start of the series, or since
// the point before.
enum class Temporality { kCumulative, kDelta };

enum class Compression { kNone, kGzip };

// What OpenTelemetry's conventions want to know and an engine cannot tell.
struct GenAiMetrics {
  std::string provider = "vllm";  // gen_ai.provider.name
  // gen_ai.operation.name; "chat" where all requests are conversations.
  std::string operation = "text_completion";
};

// How the exporters work. What is unset here comes from the environment
// variable that OpenTelemetry gives it, and is otherwise the default: an option
// beats a variable. A variable that should be a choice, a number or a list of
// attributes and is not is ignored, with a warning to `log_sink`.
struct Options {
  // --- Where to ----------------------------------------------------------

  // Of the collector; `/v1/metrics` or `/v1/traces` is put behind its path.
  // OTEL_EXPORTER_OTLP_ENDPOINT, default http://localhost:4318.
  std::optional<std::string> endpoint = {};

  // Of one signal, taken as it is. OTEL_EXPORTER_OTLP_METRICS_ENDPOINT and
  // OTEL_EXPORTER_OTLP_TRACES_ENDPOINT.
  std::optional<std::string> metrics_endpoint = {};
  std::optional<std::string> traces_endpoint = {};

  // Sent with each request, e.g. {"authorization", "Bearer ..."}.
  // OTEL_EXPORTER_OTLP_[METRICS_|TRACES_]HEADERS.
  std::optional<std::vector<std::pair<std::string, std::string>>> headers = {};

  // OTEL_EXPORTER_OTLP_[METRICS_|TRACES_]COMPRESSION, default none.
  std::optional<Compression> compression = {};

  // Seconds, above 0: of one request. OTEL_EXPORTER_OTLP_[METRICS_|TRACES_]
  // TIMEOUT (milliseconds), default 10.
  std::optional<double> timeout = {};

  // Files in PEM, for https. OTEL_EXPORTER_OTLP_CERTIFICATE, _CLIENT_KEY and
  // _CLIENT_CERTIFICATE; default: the system's authorities, no client's.
  std::optional<std::string> ca_certificate = {};
  std::optional<std::string> client_key = {};
  std::optional<std::string> client_certificate = {};

  // --- Into files, not to a collector ------------------------------------

  // Each export is a line at the end of the file, in OTLP's JSON: for sites
  // without a way to a collector, and for tests. Metrics and spans need a file
  // each; several processes may share it. Its folder is not made.
  // OTEL_METRICS_EXPORTER and OTEL_TRACES_EXPORTER: otlp, or otlp/stdout for
  // the file /dev/stdout, or none, which is `disabled`.
  std::optional<std::string> metrics_file = {};
  std::optional<std::string> traces_file = {};

  // Bytes. A line that would make its file longer begins a new one; the old one
  // gets `.1` behind its name, and the one that had it is gone. 0: never.
  std::uint64_t file_max_bytes = 0;

  // --- Who sends ---------------------------------------------------------

  // The attribute service.name. OTEL_SERVICE_NAME, then service.name of
  // OTEL_RESOURCE_ATTRIBUTES, default unknown_service.
  std::optional<std::string> service_name = {};

  // Attributes of the process, beside those of OTEL_RESOURCE_ATTRIBUTES, which
  // they beat. Without one of that name, service.instance.id is a random UUID,
  // one for all exporters of the process.
  std::vector<std::pair<std::string, std::string>> resource_attributes = {};

  // --- Metrics -----------------------------------------------------------

  // Seconds from export to export. Above 0; OTEL_METRIC_EXPORT_INTERVAL
  // (milliseconds), default 60.
  std::optional<double> export_interval = {};

  // Seconds that one export may take, its retries with it.
  // OTEL_METRIC_EXPORT_TIMEOUT (milliseconds), default 30.
  std::optional<double> export_timeout = {};

  // OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: cumulative, delta or
  // lowmemory (which is delta for what there is here); default cumulative.
  std::optional<Temporality> temporality = {};

  // Families with native buckets as exponential histograms. False: their
  // classic buckets, and so with explicit_bucket_histogram as
  // OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION.
  bool exponential_histograms = true;

  // Beside the page's metrics those that OpenTelemetry's conventions define for
  // a model server, gen_ai.server.* and gen_ai.client.token.usage, from the
  // histograms of the page. Unset: without them. Spans have the two names that
  // are in it in any case.
  std::optional<GenAiMetrics> gen_ai = {};

  // --- Spans -------------------------------------------------------------

  // Of requests that come without a trace context, 0 to 1 get a span, the root
  // of a trace of its own. Those that have one are sampled when it says so.
  // OTEL_TRACES_SAMPLER: always_on, always_off and traceidratio look at no
  // context, parentbased_... of each do; default parentbased_always_on.
  // OTEL_TRACES_SAMPLER_ARG is the ratio.
  std::optional<double> root_ratio = {};

  // Seconds between two exports. OTEL_BSP_SCHEDULE_DELAY (milliseconds),
  // default 5. Of one export with its retries: OTEL_BSP_EXPORT_TIMEOUT
  // (milliseconds), default 30.
  std::optional<double> span_delay = {};
  std::optional<double> span_export_timeout = {};

  // Requests that wait for the next export, of each engine, 1 to 65536: memory
  // set aside, 328 bytes each. OTEL_BSP_MAX_QUEUE_SIZE, default 2048.
  std::optional<std::size_t> span_queue = {};

  // Requests in one message, 1 to 65536. OTEL_BSP_MAX_EXPORT_BATCH_SIZE,
  // default 512.
  std::optional<std::size_t> span_batch = {};

  // --- Surroundings ------------------------------------------------------

  // Nothing is exported. OTEL_SDK_DISABLED, default false.
  std::optional<bool> disabled = {};

  // Looks a variable up; null for one that is not set. Empty: the process's
  // environment. To ignore that, return null.
  std::function<const char*(const char* name)> environment = {};

  // Told of variables that are ignored, and once when exports begin to fail,
  // and when they are taken again. Null: standard error.
  std::shared_ptr<LogSink> log_sink = {};

  std::shared_ptr<Transport> transport = {};  // null: libcurl, or the file
  std::shared_ptr<const Clock> clock = {};    // null: the machine's
};

}  // namespace vllm_metrics::inline v0::otlp
