#include "vllm_metrics/version.h"

namespace vllm_metrics::inline v0 {

std::string_view version() noexcept { return VLLM_METRICS_VERSION; }

}  // namespace vllm_metrics::inline v0
