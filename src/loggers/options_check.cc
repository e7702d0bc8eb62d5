#include "src/loggers/options_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "vllm_metrics/catalogue/catalogue.h"
#include "vllm_metrics/catalogue/lifecycle.h"
#include "vllm_metrics/primitives/bucket_bounds.h"
#include "vllm_metrics/registry/labels.h"

namespace vllm_metrics::inline v0 {
namespace {

constexpr WireVersion kOldestWire = {0, 27};
constexpr WireVersion kNewestWire = {0, 32};
constexpr std::int64_t kMostPositions = 1024;  // one series each

template <class... Args>
absl::Status invalid(fmt::format_string<Args...> text, Args&&... args) {
  return absl::InvalidArgumentError(
      fmt::format(text, std::forward<Args>(args)...));
}

absl::Status check_engines(const StatLoggerOptions& options) {
  if (options.model_name.empty())
    return invalid("model_name is empty; allowed: the served model's name");
  if (options.max_model_len < 1)
    return invalid("max_model_len = {}; allowed: 1 or more",
                   options.max_model_len);
  const auto& indexes = options.engine_indexes;
  for (std::size_t i = 0; i < indexes.size(); ++i) {
    if (indexes[i] < 0)
      return invalid("engine_indexes[{}] = {}; allowed: 0 or more", i,
                     indexes[i]);
    const auto twin = static_cast<std::size_t>(
        std::ranges::find(indexes, indexes[i]) - indexes.begin());
    if (twin < i)
      return invalid(
          "engine_indexes[{}] = {} is also engine_indexes[{}]; allowed: each "
          "once",
          i, indexes[i], twin);
  }
  if (options.num_gpu_blocks.has_value() && *options.num_gpu_blocks < 0) {
    return invalid("num_gpu_blocks = {}; allowed: 0 or more",
                   *options.num_gpu_blocks);
  }
  Labels labels{{"engine", "0"}};
  for (const auto& [key, value] : options.cache_config)
    labels.push_back({key, value});
  if (auto status = check_labels("vllm:cache_config_info", labels, "");
      !status.ok()) {
    return invalid("cache_config: {}", std::string(status.message()));
  }
  return absl::OkStatus();
}

absl::Status check_features(const StatLoggerOptions& options) {
  if (options.num_speculative_tokens.value_or(0) < 0 ||
      options.num_speculative_tokens.value_or(0) > kMostPositions) {
    return invalid("num_speculative_tokens = {}; allowed: 0 to {}",
                   *options.num_speculative_tokens, kMostPositions);
  }
  if (options.max_loras.value_or(1) < 1) {
    return invalid("max_loras = {}; allowed: 1 or more", *options.max_loras);
  }
  if (options.lora_label_sets < 1) {
    return invalid("lora_label_sets = {}; allowed: 1 or more",
                   options.lora_label_sets);
  }
  if (options.debug_mfu_metrics && !options.enable_mfu_metrics) {
    return invalid("debug_mfu_metrics = true needs enable_mfu_metrics = true");
  }
  return absl::OkStatus();
}

absl::Status check_loggers(const StatLoggerOptions& options) {
  if (options.kv_cache_metrics && !options.log_stats) {
    return invalid(
        "kv_cache_metrics = true needs log_stats = true; without it there is "
        "nothing to record to");
  }
  if (options.client_count < 1)
    return invalid("client_count = {}; allowed: 1 or more",
                   options.client_count);
  for (std::size_t i = 0; i < options.factories.size(); ++i) {
    const bool callable = std::visit(
        [](const auto& factory) { return static_cast<bool>(factory); },
        options.factories[i]);
    if (!callable)
      return invalid(
          "factories[{}] is an empty function; allowed: one that makes a stat "
          "logger",
          i);
  }
  return absl::OkStatus();
}

absl::Status check_bounds(std::string_view field,
                          std::span<const double> bounds) {
  std::string why;
  if (BucketBounds::create(bounds, &why).has_value()) return absl::OkStatus();
  return invalid("{}: {}; allowed: rising finite numbers", field, why);
}

// A family named in `field`, a list of overrides: a histogram of the catalogue,
// named once.
template <class Override>
absl::Status check_family(std::string_view field,
                          std::span<const Override> overrides, std::size_t i) {
  const MetricSpec* spec = find_spec(overrides[i].family);
  if (spec == nullptr || spec->kind != MetricKind::kHistogram) {
    return invalid(
        "{}[{}].family = \"{}\" is not a histogram of the catalogue; "
        "allowed: e.g. \"{}\"",
        field, i, valid_utf8(overrides[i].family),
        spec_of(MetricId::kE2eRequestLatency).name);
  }
  const auto twin =
      std::ranges::find(overrides, overrides[i].family, &Override::family) -
      overrides.begin();
  if (static_cast<std::size_t>(twin) == i) return absl::OkStatus();
  return invalid("{}[{}].family = \"{}\" is also {}[{}].family", field, i,
                 overrides[i].family, field, twin);
}

absl::Status check_buckets(const StatLoggerOptions& options) {
  for (std::size_t i = 0; i < options.buckets.size(); ++i) {
    if (auto status =
            check_family<BucketOverride>("buckets", options.buckets, i);
        !status.ok())
      return status;
    const BucketOverride& override = options.buckets[i];
    if (auto status =
            check_bounds(fmt::format("buckets[{}] of {}", i, override.family),
                         override.bounds);
        !status.ok())
      return status;
  }
  if (options.latency_buckets.empty()) return absl::OkStatus();
  return check_bounds("latency_buckets", options.latency_buckets);
}

absl::Status check_native_histograms(const StatLoggerOptions& options) {
  for (std::size_t i = 0; i < options.native_histograms.size(); ++i) {
    if (auto status = check_family<NativeOverride>(
            "native_histograms", options.native_histograms, i);
        !status.ok())
      return status;
    const std::string& family = options.native_histograms[i].family;
    if (find_spec(family)->scope != Scope::kEngine)
      return invalid(
          "native_histograms[{}].family = \"{}\" is not of an engine; allowed: "
          "e.g. \"{}\"",
          i, family, spec_of(MetricId::kE2eRequestLatency).name);
  }
  return absl::OkStatus();
}

absl::Status check_page(const StatLoggerOptions& options) {
  if (options.wire_version < kOldestWire ||
      options.wire_version > kNewestWire) {
    return invalid("wire_version = {}.{}; allowed: {}.{} to {}.{}",
                   options.wire_version.major, options.wire_version.minor,
                   kOldestWire.major, kOldestWire.minor, kNewestWire.major,
                   kNewestWire.minor);
  }
  if (auto release = running_release(options); !release.ok()) {
    return release.status();
  }
  if (auto shown = shows_hidden_families(options); !shown.ok()) {
    return shown.status();
  }
  if (options.step_metrics.metrics.empty() !=
      (options.step_metrics.write == nullptr)) {
    return invalid(
        "step_metrics.metrics has {} entries and step_metrics.write is {}; "
        "allowed: both or neither",
        options.step_metrics.metrics.size(),
        options.step_metrics.write == nullptr ? "empty" : "set");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<WireVersion> running_release(const StatLoggerOptions& options) {
  if (options.vllm_version.empty()) return options.wire_version;
  return release_of(options.vllm_version);
}

absl::StatusOr<bool> shows_hidden_families(const StatLoggerOptions& options) {
  const std::string running =
      !options.vllm_version.empty()
          ? options.vllm_version
          : fmt::format("{}.{}.0", options.wire_version.major,
                        options.wire_version.minor);
  return shows_hidden(options.show_hidden_metrics_for_version, running);
}

StatLoggerOptions with_defaults(StatLoggerOptions options) {
  if (options.engine_indexes.empty()) options.engine_indexes = {0};
  if (options.clock == nullptr) options.clock = Clock::system();
  if (options.log_sink == nullptr) options.log_sink = LogSink::standard_error();
  return options;
}

absl::StatusOr<StatLoggerOptions> checked(StatLoggerOptions options) {
  for (const auto check :
       {check_engines, check_features, check_loggers, check_buckets,
        check_native_histograms, check_page}) {
    if (auto status = check(options); !status.ok()) return status;
  }
  return with_defaults(std::move(options));
}

}  // namespace vllm_metrics::inline v0
