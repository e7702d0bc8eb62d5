#include "vllm_metrics/otlp/span_exporter.h"

#include <random>
#include <utility>

#include "absl/status/status.h"
#include "src/otlp/make_transport.h"
#include "src/otlp/span_push.h"
#include "src/otlp/worker_thread.h"

namespace vllm_metrics::inline v0::otlp {
namespace {

std::uint64_t make_seed() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

// Stands in for a logger when spans are switched off.
class NoSpans final : public StatLoggerBase {
 public:
  std::string_view name() const override { return "otlp_spans"; }
  void record(const StepRecord&) override {}
};

}  // namespace

struct SpanExporter::State {
  State(std::shared_ptr<SpanLanes> shared, std::shared_ptr<Transport> transport)
      : lanes(std::move(shared)),
        thread(lanes->settings.span_delay, lanes->settings.span_export_timeout,
               transport),
        push(lanes,
             Delivery(lanes->settings, transport, Clock::system(),
                      [this](double s) { return thread.wait(s); }),
             make_seed()) {}
  ~State() { stop(0.0); }

  bool start() {
    return thread.start([this](double seconds) { return push.run(seconds); },
                        [this] { return lanes->has_full_batch(); });
  }
  void stop(double timeout) {
    if (!thread.is_here()) return;
    thread.stop(timeout);
    lanes->close();
  }

  const std::shared_ptr<SpanLanes> lanes;
  WorkerThread thread;
  SpanPush push;
};

absl::StatusOr<std::unique_ptr<SpanExporter>> SpanExporter::start(
    std::shared_ptr<Registry> registry, Options options) {
  if (registry == nullptr)
    return absl::InvalidArgumentError(
        "registry is null; pass the one of the page");
  auto settings = resolve(options, Signal::kTraces);
  if (!settings.ok()) return settings.status();
  if (settings->disabled)
    return std::unique_ptr<SpanExporter>(new SpanExporter(nullptr));

  auto transport = make_transport(options, *settings, Signal::kTraces);
  if (!transport.ok()) return transport.status();
  auto metrics =
      ExporterMetrics::create(*registry, Signal::kTraces, options.log_sink);
  if (!metrics.ok()) return metrics.status();
  auto state = std::make_unique<State>(
      std::make_shared<SpanLanes>(*settings, *std::move(metrics)),
      *std::move(transport));
  if (!state->start()) return no_thread();
  return std::unique_ptr<SpanExporter>(new SpanExporter(std::move(state)));
}

SpanExporter::SpanExporter(std::unique_ptr<State> state) noexcept
    : state_(std::move(state)) {}

SpanExporter::~SpanExporter() {
  shutdown();
  if (state_ != nullptr && !state_->thread.is_here())
    static_cast<void>(state_.release());  // the parent's
}

StatLoggerFactory SpanExporter::factory() {
  const auto lanes = state_ != nullptr ? state_->lanes : nullptr;
  return PerEngineStatLoggerFactory(
      [lanes](
          const StatLoggerOptions& options,
          int engine_index) -> absl::StatusOr<std::unique_ptr<StatLoggerBase>> {
        if (lanes == nullptr) return std::make_unique<NoSpans>();
        return std::make_unique<SpanStatLogger>(lanes, options.model_name,
                                                engine_index, make_seed());
      });
}

bool SpanExporter::flush(double timeout) {
  return state_ != nullptr && state_->thread.run_now(timeout);
}

void SpanExporter::shutdown(double timeout) {
  if (state_ != nullptr) state_->stop(timeout);
}

}  // namespace vllm_metrics::inline v0::otlp
