#include "vllm_metrics/loggers/stat_logger.h"

namespace vllm_metrics::inline v0 {

StatLoggerBase::~StatLoggerBase() = default;

}  // namespace vllm_metrics::inline v0
