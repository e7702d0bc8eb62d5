#include <cstdio>
#include <string>

#include "vllm_metrics/primitives/counter.h"
#include "vllm_metrics/version.h"

int main() {
  vllm_metrics::Counter tokens;
  tokens.inc(3);
  const std::string version(vllm_metrics::version());
  std::printf("vllm_metrics %s counts %llu\n", version.c_str(),
              static_cast<unsigned long long>(tokens.value()));
  return tokens.value() == 3 && version == VLLM_METRICS_VERSION ? 0 : 1;
}
