// A copy would take half of the increments away from the page.
// Error: Counter.*deleted|deleted.*Counter
#include "vllm_metrics/primitives/counter.h"

void pass(vllm_metrics::Counter& tokens) {
#ifdef MUST_NOT_COMPILE
  vllm_metrics::Counter copy = tokens;
#else
  vllm_metrics::Counter& copy = tokens;
#endif
  copy.inc();
}
