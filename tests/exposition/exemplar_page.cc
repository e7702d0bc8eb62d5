// Writes an OpenMetrics page with exemplars, for tests that read it with other
// parsers.

#include <iostream>

#include "tests/exposition/traced_requests.h"
#include "vllm_metrics/exposition/open_metrics.h"

int main() {
  vllm_metrics::OpenMetrics format;
  std::cout << format.render(vllm_metrics::snapshot_of_traced_requests());
}
