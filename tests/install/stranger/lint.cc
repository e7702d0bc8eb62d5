// A test of the names of one's own metrics.
#include "vllm_metrics/testing/lint.h"

#include <cstdio>

#include "vllm_metrics/registry/registry.h"

int main() {
  const auto registry = vllm_metrics::Registry::create();
  const auto wait =
      registry->add_gauge({.name = "acme_wait_ms", .help = "Longest wait."});
  const auto remarks = vllm_metrics::testing::lint(*registry);
  for (const auto& remark : remarks) std::puts(remark.text.c_str());
  return wait.ok() && remarks.size() == 1 ? 0 : 1;
}
