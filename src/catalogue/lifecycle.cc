#include "vllm_metrics/catalogue/lifecycle.h"

#include <algorithm>
#include <charconv>
#include <regex>

#include "absl/strings/str_cat.h"
#include "vllm_metrics/catalogue/catalogue.h"
#include "vllm_metrics/registry/labels.h"

namespace vllm_metrics::inline v0 {
namespace {

constexpr GoneMetric kGone[] = {
    {"vllm:prompt_tokens_recomputed",
     MetricKind::kCounter,
     {0, 20},
     "vllm:prompt_tokens_by_source"},
    {"vllm:time_per_output_token_seconds",
     MetricKind::kHistogram,
     {0, 15},
     "vllm:inter_token_latency_seconds"},
    {"vllm:gpu_cache_usage_perc",
     MetricKind::kGauge,
     {0, 12},
     "vllm:kv_cache_usage_perc"},
    {"vllm:gpu_prefix_cache_queries",
     MetricKind::kCounter,
     {0, 12},
     "vllm:prefix_cache_queries"},
    {"vllm:gpu_prefix_cache_hits",
     MetricKind::kCounter,
     {0, 12},
     "vllm:prefix_cache_hits"},
    {"vllm:spec_decode_draft_acceptance_rate",
     MetricKind::kGauge,
     {0, 10},
     "rate(vllm:spec_decode_num_accepted_tokens_total[5m]) / "
     "rate(vllm:spec_decode_num_draft_tokens_total[5m])"},
    {"vllm:spec_decode_efficiency",
     MetricKind::kGauge,
     {0, 10},
     "rate(vllm:spec_decode_num_accepted_tokens_total[5m]) / "
     "rate(vllm:spec_decode_num_drafts_total[5m])"},
};

// PEP 440: epoch, release, pre-, post- and development part, local version.
bool is_version(std::string_view text) {
  const std::regex form(
      R"(\s*v?(\d+!)?\d+(\.\d+)*([-_.]?(a|b|c|rc|alpha|beta|pre|preview)[-_.]?\d*)?(-\d+|[-_.]?(post|rev|r)[-_.]?\d*)?([-_.]?dev[-_.]?\d*)?(\+[a-z0-9]+([-_.][a-z0-9]+)*)?\s*)",
      std::regex::icase);
  return std::regex_match(text.begin(), text.end(), form);
}

// The first two numbers of a version, missing ones 0.
WireVersion first_two_numbers(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_of("0123456789"), text.size()));
  if (const auto epoch = text.find('!'); epoch != std::string_view::npos)
    text.remove_prefix(epoch + 1);
  WireVersion version{0, 0};
  const auto major_end =
      std::from_chars(text.data(), text.data() + text.size(), version.major)
          .ptr;
  text.remove_prefix(static_cast<std::size_t>(major_end - text.data()));
  if (text.starts_with('.'))
    std::from_chars(text.data() + 1, text.data() + text.size(), version.minor);
  return version;
}

std::string why(const Lifecycle& lifecycle, LifecycleState state,
                bool on_page) {
  const WireVersion since = *lifecycle.deprecated_in;
  const std::string deprecated =
      absl::StrCat("deprecated in ", since.major, ".", since.minor);
  if (state == LifecycleState::kRemoved)
    return absl::StrCat(deprecated, ", gone two releases later");
  if (state == LifecycleState::kHidden) {
    return absl::StrCat(deprecated, ", hidden in the next release; ",
                        "show_hidden_metrics_for_version = \"", since.major,
                        ".", since.minor,
                        on_page ? "\" shows it" : "\" would show it");
  }
  return absl::StrCat(deprecated, lifecycle.stays_shown
                                      ? "; vLLM does not hide it"
                                      : "; hidden in the next release");
}

}  // namespace

std::string_view name_of(LifecycleState state) noexcept {
  switch (state) {
    case LifecycleState::kCurrent:
      return "current";
    case LifecycleState::kDeprecated:
      return "deprecated";
    case LifecycleState::kHidden:
      return "hidden";
    case LifecycleState::kRemoved:
      return "removed";
  }
  return "unknown";
}

LifecycleState state_of(const Lifecycle& lifecycle,
                        WireVersion running) noexcept {
  if (!lifecycle.deprecated_in.has_value()) return LifecycleState::kCurrent;
  const WireVersion since = *lifecycle.deprecated_in;
  if (running < since) return LifecycleState::kCurrent;
  if (lifecycle.stays_shown || running == since)
    return LifecycleState::kDeprecated;
  const bool next =
      running.major == since.major && running.minor == since.minor + 1;
  return next ? LifecycleState::kHidden : LifecycleState::kRemoved;
}

absl::StatusOr<WireVersion> release_of(std::string_view vllm_version) {
  if (!is_version(vllm_version)) {
    return absl::InvalidArgumentError(
        absl::StrCat("vllm_version = \"", valid_utf8(vllm_version),
                     "\" is not a version; allowed: e.g. \"0.30.0\""));
  }
  const WireVersion release = first_two_numbers(vllm_version);
  if (release.major != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("vllm_version = \"", std::string(vllm_version),
                     "\"; allowed: a release 0.x"));
  }
  return release;
}

absl::StatusOr<bool> shows_hidden(const std::optional<std::string>& shown_for,
                                  std::string_view running) {
  if (!shown_for.has_value()) return false;
  if (!is_version(*shown_for)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "show_hidden_metrics_for_version = \"", valid_utf8(*shown_for),
        "\" is not a version; allowed: e.g. \"0.29\""));
  }
  const auto release = release_of(running);
  if (!release.ok()) return release.status();
  if (release->minor == 0) return true;
  return *shown_for == absl::StrCat("0.", release->minor - 1);
}

std::string help_of(const MetricSpec& spec, LifecycleState state) {
  return help_of(spec.help, spec.lifecycle, state);
}

std::string help_of(std::string_view help, const Lifecycle& lifecycle,
                    LifecycleState state) {
  if (state == LifecycleState::kCurrent) return std::string(help);
  return absl::StrCat("DEPRECATED since ", lifecycle.deprecated_in->major, ".",
                      lifecycle.deprecated_in->minor, ", use ",
                      std::string(lifecycle.successor), ": ",
                      std::string(help));
}

std::span<const GoneMetric> gone_metrics() noexcept { return kGone; }

absl::StatusOr<std::vector<LifecycleEntry>> list_lifecycle(
    WireVersion running, const std::optional<std::string>& shown_for) {
  const auto shown = shows_hidden(
      shown_for, absl::StrCat(running.major, ".", running.minor, ".0"));
  if (!shown.ok()) return shown.status();
  std::vector<LifecycleEntry> entries;
  for (const MetricSpec& spec : catalogue()) {
    const LifecycleState state = state_of(spec.lifecycle, running);
    if (state == LifecycleState::kCurrent) continue;
    const bool on_page = state == LifecycleState::kDeprecated ||
                         (state == LifecycleState::kHidden && *shown);
    entries.push_back({spec.name, spec.kind, state, on_page,
                       *spec.lifecycle.deprecated_in, spec.lifecycle.successor,
                       why(spec.lifecycle, state, on_page)});
  }
  std::ranges::stable_sort(entries, {}, &LifecycleEntry::state);
  for (const GoneMetric& gone : kGone) {
    entries.push_back(
        {gone.name, gone.kind, LifecycleState::kRemoved, false, gone.gone_since,
         gone.successor,
         absl::StrCat("vLLM has not had it since ", gone.gone_since.major, ".",
                      gone.gone_since.minor)});
  }
  return entries;
}

}  // namespace vllm_metrics::inline v0
