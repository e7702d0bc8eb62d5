#include "vllm_metrics/otlp/metrics_exporter.h"

#include <utility>

#include "absl/status/status.h"
#include "src/otlp/make_transport.h"
#include "src/otlp/metrics_push.h"
#include "src/otlp/worker_thread.h"

namespace vllm_metrics::inline v0::otlp {

class MetricsExporter::Worker {
 public:
  Worker(std::shared_ptr<Registry> registry, const Settings& settings,
         const Options& options, std::shared_ptr<Transport> transport,
         std::unique_ptr<ExporterMetrics> metrics)
      : thread_(settings.export_interval, settings.export_timeout, transport),
        push_(std::move(registry), settings,
              options.exponential_histograms && !settings.explicit_histograms,
              options.clock != nullptr ? options.clock : Clock::system(),
              // How long things take is real, whatever time it is said to be.
              Delivery(settings, transport, Clock::system(),
                       [this](double s) { return thread_.wait(s); }),
              std::move(metrics)) {}
  ~Worker() { thread_.stop(0.0); }

  bool start() {
    return thread_.start([this](double seconds) { return push_.run(seconds); });
  }
  WorkerThread& thread() { return thread_; }

 private:
  WorkerThread thread_;
  MetricsPush push_;
};

absl::StatusOr<std::unique_ptr<MetricsExporter>> MetricsExporter::start(
    std::shared_ptr<Registry> registry, Options options) {
  if (registry == nullptr)
    return absl::InvalidArgumentError("registry is null; pass the one to push");
  auto settings = resolve(options, Signal::kMetrics);
  if (!settings.ok()) return settings.status();
  if (settings->disabled)
    return std::unique_ptr<MetricsExporter>(new MetricsExporter(nullptr));

  auto transport = make_transport(options, *settings, Signal::kMetrics);
  if (!transport.ok()) return transport.status();
  auto metrics =
      ExporterMetrics::create(*registry, Signal::kMetrics, options.log_sink);
  if (!metrics.ok()) return metrics.status();
  auto worker =
      std::make_unique<Worker>(std::move(registry), *settings, options,
                               *std::move(transport), *std::move(metrics));
  if (!worker->start()) return no_thread();
  return std::unique_ptr<MetricsExporter>(
      new MetricsExporter(std::move(worker)));
}

MetricsExporter::MetricsExporter(std::unique_ptr<Worker> worker) noexcept
    : worker_(std::move(worker)) {}

MetricsExporter::~MetricsExporter() {
  shutdown();
  if (worker_ != nullptr && !worker_->thread().is_here())
    static_cast<void>(worker_.release());  // the parent's
}

bool MetricsExporter::flush(double timeout) {
  return worker_ != nullptr && worker_->thread().run_now(timeout);
}

void MetricsExporter::shutdown(double timeout) {
  if (worker_ != nullptr) worker_->thread().stop(timeout);
}

}  // namespace vllm_metrics::inline v0::otlp
