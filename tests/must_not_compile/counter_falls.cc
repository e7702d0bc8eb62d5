// A value that can fall is a Gauge.
// Error: no member named 'dec'
#include "vllm_metrics/primitives/counter.h"
#include "vllm_metrics/primitives/gauge.h"

#ifdef MUST_NOT_COMPILE
void finish(vllm_metrics::Counter& running) { running.dec(); }
#else
void finish(vllm_metrics::Gauge& running) { running.dec(); }
#endif
