#include "src/tools/sim/otlp_push.h"

#include <utility>

#include "absl/status/status.h"
#ifdef VLLM_METRICS_SIM_OTLP
#include "vllm_metrics/otlp/metrics_exporter.h"
#include "vllm_metrics/otlp/span_exporter.h"
#endif

namespace vllm_metrics::sim {

#ifdef VLLM_METRICS_SIM_OTLP
namespace {

class Exporters final : public OtlpPush {
 public:
  Exporters(std::unique_ptr<otlp::MetricsExporter> metrics,
            std::unique_ptr<otlp::SpanExporter> spans)
      : metrics_(std::move(metrics)), spans_(std::move(spans)) {}

  StatLoggerFactory logger() override { return spans_->factory(); }
  void end() override {
    spans_->shutdown();  // first: the last page says how it went
    metrics_->shutdown();
  }

 private:
  std::unique_ptr<otlp::MetricsExporter> metrics_;
  std::unique_ptr<otlp::SpanExporter> spans_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<OtlpPush>> OtlpPush::start(
    std::shared_ptr<Registry> registry, const std::string& endpoint) {
  otlp::Options options;
  options.endpoint = endpoint;
  auto spans = otlp::SpanExporter::start(registry, options);
  if (!spans.ok()) return spans.status();
  // Second, since it would push the page before it ends.
  auto metrics = otlp::MetricsExporter::start(registry, options);
  if (!metrics.ok()) return metrics.status();
  return std::make_unique<Exporters>(*std::move(metrics), *std::move(spans));
}
#else
absl::StatusOr<std::unique_ptr<OtlpPush>> OtlpPush::start(
    std::shared_ptr<Registry>, const std::string&) {
  return absl::InvalidArgumentError(
      "--otlp-endpoint: allowed only in a build with VLLM_METRICS_OTLP");
}
#endif

}  // namespace vllm_metrics::sim
