#include "vllm_metrics/registry/family.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "vllm_metrics/registry/labels.h"

namespace vllm_metrics::inline v0 {
namespace {

constexpr std::string_view kTotal = "_total";

bool is_metric_name(std::string_view name) {
  const auto is_start = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == ':';
  };
  return !name.empty() && is_start(name.front()) &&
         std::ranges::all_of(name, [&](char c) {
           return is_start(c) || (c >= '0' && c <= '9');
         });
}

}  // namespace

std::string_view name_of(MetricKind kind) {
  switch (kind) {
    case MetricKind::kCounter:
      return "counter";
    case MetricKind::kGauge:
      return "gauge";
    case MetricKind::kHistogram:
      return "histogram";
  }
  return "untyped";
}

absl::Status check_family(const Family& family) {
  if (!is_metric_name(family.name)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "family \"", valid_utf8(family.name),
        "\" is not a metric name; allowed: [a-zA-Z_:][a-zA-Z0-9_:]*"));
  }
  if (family.kind == MetricKind::kCounter && family.name == kTotal) {
    return absl::InvalidArgumentError(
        "family \"_total\" is a suffix without a name before it");
  }
  if (family.info && family.kind != MetricKind::kGauge) {
    return absl::InvalidArgumentError(
        absl::StrCat("family ", family.name, " is an info family of kind ",
                     std::string(name_of(family.kind)), "; allowed: gauge"));
  }
  return absl::OkStatus();
}

Family normalized(Family family) {
  if (family.kind == MetricKind::kCounter && family.name.ends_with(kTotal)) {
    family.name.resize(family.name.size() - kTotal.size());
  }
  family.help = valid_utf8(family.help);
  family.unit = valid_utf8(family.unit);
  return family;
}

}  // namespace vllm_metrics::inline v0
