#include "vllm_metrics/exposition/page_writer.h"

namespace vllm_metrics::inline v0 {

PageWriter::~PageWriter() = default;

}  // namespace vllm_metrics::inline v0
