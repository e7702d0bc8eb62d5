#include "src/otlp/exporter_metrics.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "vllm_metrics/catalogue/catalogue.h"
#include "vllm_metrics/loggers/clock.h"

namespace vllm_metrics::inline v0::otlp {
namespace {

std::string_view name_of(Signal signal) {
  return signal == Signal::kMetrics ? "metrics" : "traces";
}

// A counter for each value of the extra label, which are in the order of the
// enum that indexes them.
absl::Status add_counters(Registry& registry, MetricId id, Signal signal,
                          std::vector<Handle<Counter>>& out) {
  const MetricSpec& spec = spec_of(id);
  for (const std::string_view value : spec.extra_label.values) {
    auto counter = registry.add_counter(
        family_of(spec),
        {{"signal", std::string(name_of(signal))},
         {std::string(spec.extra_label.name), std::string(value)}});
    if (!counter.ok()) return counter.status();
    out.push_back(*std::move(counter));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ExporterMetrics>> ExporterMetrics::create(
    Registry& registry, Signal signal, std::shared_ptr<LogSink> log_sink) {
  Counters exports;
  Counters losses;
  auto status = add_counters(registry, MetricId::kOtlpExports, signal, exports);
  if (status.ok())
    status = add_counters(registry, MetricId::kOtlpLostItems, signal, losses);
  if (!status.ok()) return status;
  if (log_sink == nullptr) log_sink = LogSink::standard_error();
  return std::unique_ptr<ExporterMetrics>(new ExporterMetrics(
      std::move(exports), std::move(losses), signal, std::move(log_sink)));
}

void ExporterMetrics::ended(const Delivered& delivered) noexcept {
  exports_[static_cast<std::size_t>(delivered.outcome)]->inc();
  lost(Loss::kRejected, delivered.partial.rejected);
  try {
    say(delivered);
  } catch (...) {  // of the sink; the counters have it
  }
}

void ExporterMetrics::say(const Delivered& delivered) {
  const auto write = [this](LogLevel level, std::string_view text) {
    if (level >= log_sink_->minimum_level())
      log_sink_->write(level, Clock::system()->wall(), LogSink::kNoEngine,
                       text);
  };
  if (delivered.outcome != Outcome::kAccepted) {
    if (failures_++ == 0)
      write(LogLevel::kWarning,
            fmt::format("OTLP: an export of {} failed: {}. This is said once, "
                        "until one succeeds.",
                        name_of(signal_), delivered.error));
    return;
  }
  if (const auto failures = std::exchange(failures_, 0); failures > 0)
    write(LogLevel::kInfo,
          fmt::format("OTLP: exports of {} succeed again; {} had failed.",
                      name_of(signal_), failures));
  const PartialSuccess& partial = delivered.partial;
  if ((partial.rejected == 0 && partial.message.empty()) ||
      std::exchange(said_partial_, true))
    return;
  write(LogLevel::kWarning,
        fmt::format("OTLP: the collector rejected {} items of an export of {}, "
                    "and says \"{}\". This is said once; "
                    "vllm_metrics_otlp_lost_items_total counts them all.",
                    partial.rejected, name_of(signal_), partial.message));
}

}  // namespace vllm_metrics::inline v0::otlp
