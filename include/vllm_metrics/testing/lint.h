#pragma once

#include <span>
#include <string>
#include <vector>

#include "vllm_metrics/export.h"
#include "vllm_metrics/exposition/page.h"
#include "vllm_metrics/registry/registry.h"

namespace vllm_metrics::inline v0::testing {

// What a reader of dashboards will trip over in a metric.
struct LintRemark {
  std::string metric;  // as TYPE has it on a text page
  std::string rule;    // see lint()
  std::string text;    // what is wrong, and what is expected

  friend bool operator==(const LintRemark&, const LintRemark&) = default;
};

// A remark that stays, and why.
struct LintException {
  std::string metric;
  std::string rule;  // empty for every rule
  std::string reason;
};

// Whether names, help and labels are as Prometheus's naming guide has them, for
// tests of your own metrics: CHECK(lint(*registry).empty()). The remarks are in
// the order of the page; those of `exceptions` are left out. Rules:
//
//   help          there is none
//   total         a counter without `_total`, or something else with it
//   suffix        `_bucket`, `_count` or `_sum` at the end of a name
//   type_in_name  the name says counter, gauge, histogram or summary
//   base_unit     milliseconds, kilobytes, hours, ...: not the base unit
//   abbreviation  ms, mb, h, ...: a unit in short
//   ratio         percent, perc: a ratio of 0 to 1 is what queries expect
//   colon         a colon: those are for recording rules
//   case          camelCase, in the name or in a label's name
//   label         a label `le` or `quantile` that the kind has no use for, or
//                 one that begins with `__`
//
// `promtool check metrics` (2.42) has no remark that lint() has not, once the
// page is parsed; the rule `ratio`, `mebibytes` and `__` are lint()'s own.
//
// Thread-safety: a function of its arguments. Errors: none.
// Definition: "Metric and label naming" of Prometheus.
VLLM_METRICS_EXPORT std::vector<LintRemark> lint(
    const Page& page, std::span<const LintException> exceptions = {});
VLLM_METRICS_EXPORT std::vector<LintRemark> lint(
    const Registry& registry, std::span<const LintException> exceptions = {});

// For registries that vLLM's families are in as well: their names are vLLM's,
// with the reasons that the catalogue has as notes.
VLLM_METRICS_EXPORT std::vector<LintException> vllm_exceptions();

}  // namespace vllm_metrics::inline v0::testing
