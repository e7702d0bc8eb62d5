#include "src/loggers/request_exemplar.h"

#include <cstdint>
#include <span>

namespace vllm_metrics::inline v0 {
namespace {

std::uint64_t big_endian(std::span<const std::uint8_t, 8> bytes) {
  std::uint64_t word = 0;
  for (const std::uint8_t byte : bytes) word = word << 8 | byte;
  return word;
}

}  // namespace

Exemplar exemplar_of(const FinishedRequestStats& finished) {
  const std::span<const std::uint8_t, 16> trace_id(finished.trace.trace_id);
  return {.trace_id = {big_endian(trace_id.first<8>()),
                       big_endian(trace_id.last<8>())},
          .span_id = big_endian(finished.trace.span_id),
          .request_id = finished.request_id.bytes()};
}

std::optional<double> latency_of(const FinishedRequestStats& finished,
                                 MetricId id) {
  switch (id) {
    case MetricId::kTimeToFirstToken:
      return finished.first_token_latency;
    case MetricId::kE2eRequestLatency:
      return finished.e2e_latency;
    case MetricId::kRequestQueueTime:
      return finished.queued_time;
    case MetricId::kRequestPrefillTime:
      return finished.prefill_time;
    case MetricId::kRequestInferenceTime:
      return finished.inference_time;
    case MetricId::kRequestDecodeTime:
      return finished.decode_time;
    case MetricId::kRequestTimePerOutputToken:
      return finished.mean_time_per_output_token;
    default:
      return std::nullopt;
  }
}

}  // namespace vllm_metrics::inline v0
