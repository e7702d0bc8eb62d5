#include "vllm_metrics/primitives/counter.h"

int main() {
  vllm_metrics::Counter tokens;
  tokens.inc(3);
  return tokens.value() == 3 ? 0 : 1;
}
