#include "src/otlp/make_transport.h"

#include "src/otlp/curl_transport.h"
#include "src/otlp/file_transport.h"

namespace vllm_metrics::inline v0::otlp {

absl::StatusOr<std::shared_ptr<Transport>> make_transport(
    const Options& options, const Settings& settings, Signal signal) {
  if (options.transport != nullptr) return options.transport;
  if (!settings.file.empty()) return make_file_transport(settings, signal);
  return make_curl_transport(settings);
}

}  // namespace vllm_metrics::inline v0::otlp
