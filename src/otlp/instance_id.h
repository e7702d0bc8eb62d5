#pragma once

#include <string>

namespace vllm_metrics::inline v0::otlp {

// What tells this process from others of the same service: a random UUID,
// the same at each call, another in the child of a fork. Empty when the system
// has no random numbers.
//
// Thread-safety: from any thread.
// Definition: OpenTelemetry's service.instance.id; RFC 9562, version 4.
std::string instance_id();

}  // namespace vllm_metrics::inline v0::otlp
