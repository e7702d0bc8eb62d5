#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "vllm_metrics/catalogue/metric_spec.h"
#include "vllm_metrics/export.h"

namespace vllm_metrics::inline v0 {

// Where a family is on its way off the page. Deprecated in release X.Y, it is
// hidden in X.Y+1 unless asked for, and removed in X.Y+2.
// Definition: vLLM's deprecation policy for metrics.
enum class LifecycleState { kCurrent, kDeprecated, kHidden, kRemoved };

VLLM_METRICS_EXPORT std::string_view name_of(LifecycleState state) noexcept;

// The state in release `running`. A family that is not deprecated is current.
VLLM_METRICS_EXPORT LifecycleState state_of(const Lifecycle& lifecycle,
                                            WireVersion running) noexcept;

// The release that a version names: "0.30.1rc1" is {0, 30}.
// Errors: InvalidArgument for a text that is no version (PEP 440) and for a
// release whose major number is not 0.
VLLM_METRICS_EXPORT absl::StatusOr<WireVersion> release_of(
    std::string_view vllm_version);

// Whether hidden families are shown: `shown_for` is the option
// show_hidden_metrics_for_version, `running` the release, e.g. "0.30.1".
// Without the option no; in a development tree (0.0.x) yes; otherwise exactly
// when the option's text is the release before, "0.29".
// Errors: InvalidArgument for a text that is no version (PEP 440) and for a
// running release whose major number is not 0.
VLLM_METRICS_EXPORT absl::StatusOr<bool> shows_hidden(
    const std::optional<std::string>& shown_for, std::string_view running);

// HELP of a family in that state: a deprecated one says so and names its
// successor.
VLLM_METRICS_EXPORT std::string help_of(const MetricSpec& spec,
                                        LifecycleState state);
VLLM_METRICS_EXPORT std::string help_of(std::string_view help,
                                        const Lifecycle& lifecycle,
                                        LifecycleState state);

// A family that vLLM once had and this library never shows.
struct GoneMetric {
  std::string_view name;
  MetricKind kind;
  WireVersion gone_since;      // first release without it
  std::string_view successor;  // a family, or what to do instead
};

// What dashboards may still ask for in vain, newest first.
VLLM_METRICS_EXPORT std::span<const GoneMetric> gone_metrics() noexcept;

// A family that is on its way off the page, or gone.
struct LifecycleEntry {
  std::string_view name;
  MetricKind kind;
  LifecycleState state;  // never kCurrent
  bool on_page;          // where its condition holds
  WireVersion since;     // deprecated in, or first release without it
  std::string_view successor;
  std::string why;  // one sentence
};

// What a page of release `running` has, hides and lacks of what vLLM gave up,
// and why: deprecated, hidden, then removed families.
// Errors: those of shows_hidden().
VLLM_METRICS_EXPORT absl::StatusOr<std::vector<LifecycleEntry>> list_lifecycle(
    WireVersion running, const std::optional<std::string>& shown_for = {});

}  // namespace vllm_metrics::inline v0
