#include "src/tools/docgen/reference.h"

#include <fmt/format.h>

#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "vllm_metrics/catalogue/catalogue.h"
#include "vllm_metrics/catalogue/lifecycle.h"
#include "vllm_metrics/exposition/number_text.h"

namespace vllm_metrics::docgen {
namespace {

constexpr std::string_view kHead = R"(# Metrics

Written from the catalogue by `vllm-metrics-docgen`; do not edit. Every family, what one
sample of it is, and when it is on the page. The samples of a counter have `_total` behind
the name, unless it ends so already; those of a histogram `_bucket` (with `le`), `_count`
and `_sum`. Bounds can be replaced with `StatLoggerOptions::buckets`.

)";

std::string condition_text(const MetricSpec& spec) {
  switch (spec.condition) {
    case Condition::kAlways:
      return "always";
    case Condition::kNanCheck:
      return "`compute_nans_in_logits`";
    case Condition::kKvCacheMetrics:
      return "`kv_cache_metrics`";
    case Condition::kSpeculative:
      return "`num_speculative_tokens`, unless `is_diffusion`";
    case Condition::kDiffusion:
      return "`is_diffusion`";
    case Condition::kKvConnector:
      return fmt::format("`kv_connector`: {}", spec.connector);
    case Condition::kLora:
      return "`max_loras`";
    case Condition::kEngineInitialized:
      return "after `log_engine_initialized()`";
    case Condition::kSelfMetrics:
      return spec.scope == Scope::kFolder
                 ? "`SharedRegistryOptions::self_metrics`"
                 : "`self_metrics`";
    case Condition::kHttpEndpoint:
      return "`ExposerOptions::self_metrics`";
    case Condition::kOtlpExporter:
      return "an exporter of `vllm_metrics::otlp` runs";
  }
  return "";
}

std::string sample_name(const MetricSpec& spec) {
  return std::string(spec.name) +
         (spec.kind == MetricKind::kCounter ? "_total" : "");
}

std::string_view main_label(const MetricSpec& spec) {
  switch (spec.scope) {
    case Scope::kEndpoint:
      return "address";
    case Scope::kExporter:
      return "signal";
    default:
      return "model_name";
  }
}

std::vector<std::string> labels_of(const MetricSpec& spec) {
  if (spec.id == MetricId::kLoraRequestsInfo)
    return {"max_lora", "running_lora_adapters", "waiting_lora_adapters"};
  if (spec.id == MetricId::kCacheConfigInfo)
    return {"engine", "one for each entry of cache_config"};
  if (spec.id == MetricId::kSimpleKvOffloadInfo)
    return {"engine",     "model_name",   "backend",
            "page_cache", "lazy_offload", "capacity_blocks"};
  if (spec.scope == Scope::kFolder) return {};
  std::vector<std::string> labels;
  if (spec.scope != Scope::kFrontEnd) labels.emplace_back(main_label(spec));
  if (spec.scope == Scope::kEngine) labels.insert(labels.begin(), "engine");
  if (!spec.extra_label.name.empty())
    labels.emplace_back(spec.extra_label.name);
  if (!spec.second_label.name.empty())
    labels.emplace_back(spec.second_label.name);
  return labels;
}

std::string label_text(const MetricSpec& spec) {
  std::string text;
  for (const std::string& label : labels_of(spec)) {
    const bool is_name = label.find(' ') == std::string::npos;
    text += fmt::format(fmt::runtime(is_name ? "{}`{}`" : "{}{}"),
                        text.empty() ? "" : ", ", label);
  }
  if (spec.id == MetricId::kSpecDecodeNumAcceptedTokensPerPos)
    return text + ": 0 to `num_speculative_tokens` - 1";
  for (const ExtraLabel& label : {spec.extra_label, spec.second_label}) {
    const char* before = text.find(": ") == std::string::npos ? ": " : "; ";
    for (const auto value : label.values)
      text += fmt::format("{}{}", std::exchange(before, ", "), value);
  }
  return text;
}

std::string number_text(double value) {
  char text[kMaxNumberText];
  std::string number(text, write_number(text, value));
  if (number.ends_with(".0")) number.resize(number.size() - 2);
  return number;
}

std::string bucket_text(const MetricSpec& spec) {
  if (spec.buckets.empty())
    return "1, 2, 5, 10, 20, 50, ... up to `max_model_len`";
  return bounds_text(spec.buckets);
}

// A query that shows the family as it is mostly looked at.
std::string recipe(const MetricSpec& spec) {
  const std::string by =
      spec.scope == Scope::kFrontEnd ? std::string(spec.extra_label.name)
      : spec.extra_label.name.empty()
          ? std::string(main_label(spec))
          : fmt::format("{}, {}", main_label(spec), spec.extra_label.name);
  if (spec.scope == Scope::kInfo || spec.scope == Scope::kFolder)
    return std::string(spec.name);
  switch (spec.kind) {
    case MetricKind::kCounter:
      return fmt::format("sum by ({}) (rate({}[5m]))", by, sample_name(spec));
    case MetricKind::kGauge:
      return fmt::format("{} by ({}) ({})",
                         spec.unit == "ratio" ? "avg" : "sum", by, spec.name);
    case MetricKind::kHistogram:
      return fmt::format(
          "histogram_quantile(0.95, sum by (le, {}) (rate({}_bucket[5m])))", by,
          spec.name);
  }
  return "";
}

std::string meaning(const MetricSpec& spec) {
  std::string text(help_of(spec, state_of(spec.lifecycle, WireVersion{})));
  if (!spec.note.empty()) text += fmt::format(" Note: {}.", spec.note);
  if (spec.since > WireVersion{0, 27})
    text += fmt::format(" Since {}.{}.", spec.since.major, spec.since.minor);
  return text;
}

void append_group(std::string& page, std::string_view title,
                  std::span<const MetricSpec> specs) {
  const auto out = std::back_inserter(page);
  fmt::format_to(out,
                 "## {}\n\n| family | type | unit | labels | on the page | "
                 "meaning |\n|---|---|---|---|---|---|\n",
                 title);
  for (const MetricSpec& spec : specs) {
    fmt::format_to(out, "| `{}` | {} | {} | {} | {} | {} |\n",
                   sample_name(spec), name_of(spec.kind), spec.unit,
                   label_text(spec), condition_text(spec), meaning(spec));
  }
  for (bool first = true; const MetricSpec& spec : specs) {
    if (spec.kind == MetricKind::kHistogram) {
      if (std::exchange(first, false)) page += "\n";
      fmt::format_to(out, "- `{}` buckets: {}\n", spec.name, bucket_text(spec));
    }
  }
  page += "\n```promql\n";
  for (const MetricSpec& spec : specs) page += recipe(spec) + "\n";
  page += "```\n\n";
}

void append_deprecated(std::string& page) {
  page +=
      "## Deprecated\n\nFamilies on their way off the page. By vLLM's rule one "
      "is hidden in the release after, unless "
      "`show_hidden_metrics_for_version` "
      "names the release that deprecated it, and gone in the next. An engine's "
      "own can obey it too (`StepMetrics::Metric::lifecycle`). "
      "`list_lifecycle()` tells a program what this section and the next "
      "say.\n\n"
      "| state | family | type | why | use instead |\n|---|---|---|---|---|\n";
  const auto entries = list_lifecycle(WireVersion{});
  for (const LifecycleEntry& entry : *entries) {
    if (entry.state == LifecycleState::kRemoved) continue;
    fmt::format_to(std::back_inserter(page), "| {} | `{}` | {} | {} | {} |\n",
                   name_of(entry.state), entry.name, name_of(entry.kind),
                   entry.why, entry.successor);
  }
  page += "\n";
}

void append_gone(std::string& page) {
  page +=
      "## Gone\n\nFamilies that vLLM once had, which old dashboards still ask "
      "for. They are never shown here.\n\n"
      "| family | type | gone since | use instead |\n|---|---|---|---|\n";
  for (const GoneMetric& gone : gone_metrics()) {
    fmt::format_to(std::back_inserter(page), "| `{}` | {} | {}.{} | `{}` |\n",
                   gone.name, name_of(gone.kind), gone.gone_since.major,
                   gone.gone_since.minor, gone.successor);
  }
}

}  // namespace

std::string bounds_text(std::span<const double> bounds) {
  std::string text;
  for (const double bound : bounds)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", number_text(bound));
  return text;
}

std::string reference_page() {
  std::string page(kHead);
  const auto groups = metric_groups();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto first = static_cast<std::size_t>(groups[i].first);
    const auto end = i + 1 < groups.size()
                         ? static_cast<std::size_t>(groups[i + 1].first)
                         : catalogue().size();
    append_group(page, groups[i].title,
                 catalogue().subspan(first, end - first));
  }
  append_deprecated(page);
  append_gone(page);
  return page;
}

nlohmann::ordered_json reference_json() {
  nlohmann::ordered_json metrics = nlohmann::ordered_json::array();
  for (const MetricSpec& spec : catalogue()) {
    nlohmann::ordered_json entry{
        {"name", sample_name(spec)},  {"family", spec.name},
        {"type", name_of(spec.kind)}, {"unit", spec.unit},
        {"labels", labels_of(spec)},  {"condition", condition_text(spec)},
        {"help", spec.help},          {"promql", recipe(spec)}};
    for (const ExtraLabel& label : {spec.extra_label, spec.second_label}) {
      if (!label.values.empty())
        entry["label_values"][std::string(label.name)] = label.values;
    }
    if (spec.kind == MetricKind::kHistogram) {
      if (spec.buckets.empty()) {
        entry["buckets"] = "1-2-5 up to max_model_len";
      } else {
        entry["buckets"] = spec.buckets;
      }
    }
    if (!spec.note.empty()) entry["note"] = spec.note;
    if (spec.lifecycle.deprecated_in.has_value()) {
      entry["deprecated_in"] =
          fmt::format("{}.{}", spec.lifecycle.deprecated_in->major,
                      spec.lifecycle.deprecated_in->minor);
      entry["successor"] = spec.lifecycle.successor;
    }
    metrics.push_back(std::move(entry));
  }
  nlohmann::ordered_json gone = nlohmann::ordered_json::array();
  for (const GoneMetric& metric : gone_metrics()) {
    gone.push_back({{"family", metric.name},
                    {"type", name_of(metric.kind)},
                    {"gone_since", fmt::format("{}.{}", metric.gone_since.major,
                                               metric.gone_since.minor)},
                    {"successor", metric.successor}});
  }
  return {{"metrics", std::move(metrics)}, {"gone", std::move(gone)}};
}

}  // namespace vllm_metrics::docgen
