#pragma once

#include <memory>

#include "src/otlp/settings.h"
#include "vllm_metrics/otlp/transport.h"

namespace vllm_metrics::inline v0::otlp {

// Writes each request to Settings::file, as a line of JSON, and answers like a
// server: 200 for a line that is there, 503 for a file that others lock, 507
// when it cannot be written.
std::shared_ptr<Transport> make_file_transport(const Settings& settings,
                                               Signal signal);

}  // namespace vllm_metrics::inline v0::otlp
