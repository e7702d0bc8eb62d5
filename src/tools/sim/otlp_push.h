#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "vllm_metrics/loggers/options.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics::sim {

// Pushes the page of a registry, and the requests of who logs to it, to an
// OpenTelemetry collector.
class OtlpPush {
 public:
  // Errors: InvalidArgument for an endpoint or a variable OTEL_... that is not
  // allowed, and for a build without vllm_metrics::otlp.
  static absl::StatusOr<std::unique_ptr<OtlpPush>> start(
      std::shared_ptr<Registry> registry, const std::string& endpoint);
  virtual ~OtlpPush() = default;

  virtual StatLoggerFactory logger() = 0;

  // Pushes what is left, for ten seconds at most, and no more then. The page
  // still has to have its engines.
  virtual void end() = 0;
};

}  // namespace vllm_metrics::sim
