// How does a test of mine see that my metrics are named as others expect?

#include <iostream>
#include <span>
#include <vector>

#include "vllm_metrics/primitives/counter.h"
#include "vllm_metrics/primitives/gauge.h"
#include "vllm_metrics/registry/registry.h"
#include "vllm_metrics/testing/lint.h"

namespace {

using namespace vllm_metrics;

// [lint]
// In a test: CHECK(passes(*registry)). vllm_exceptions() is for registries that
// vLLM's families are in, too.
bool passes(const Registry& registry) {
  std::vector<testing::LintException> exceptions = testing::vllm_exceptions();
  exceptions.push_back({.metric = "acme_padding_percent",
                        .rule = "ratio",
                        .reason = "dashboards have had it for years"});
  const auto remarks = testing::lint(registry, exceptions);
  for (const testing::LintRemark& remark : remarks)
    std::cerr << remark.text << '\n';
  return remarks.empty();
}
// [/lint]

}  // namespace

int main() {
  const auto registry = Registry::create();
  const auto padding = registry->add_gauge(
      {.name = "acme_padding_percent", .help = "Tokens computed for nothing."});
  const auto retries =
      registry->add_counter({.name = "acme_retries", .help = "Retries."});
  if (!padding.ok() || !retries.ok()) return 1;
  if (!passes(*registry)) return 1;

  const auto wait =
      registry->add_gauge({.name = "acme_wait_ms", .help = "Longest wait."});
  if (!wait.ok()) return 1;
  return passes(*registry) ? 1 : 0;  // acme_wait_ms is found
}
