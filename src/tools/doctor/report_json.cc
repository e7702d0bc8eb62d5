#include "src/tools/doctor/report_json.h"

#include <cmath>
#include <optional>
#include <string>
#include <string_view>

namespace vllm_metrics::doctor {
namespace {

using Json = nlohmann::ordered_json;

Json value(std::optional<double> number) {
  if (!number.has_value() || !std::isfinite(*number)) return nullptr;
  return *number;
}

Json value(const std::optional<Level>& level) {
  if (!level.has_value()) return nullptr;
  return {{"before", value(level->before)}, {"after", value(level->after)}};
}

Json value(const std::optional<HistogramValue>& taken) {
  if (!taken.has_value()) return nullptr;
  return {{"count", taken->count()},
          {"mean", value(mean(*taken))},
          {"p50", value(quantile(0.5, *taken))},
          {"p95", value(quantile(0.95, *taken))},
          {"p99", value(quantile(0.99, *taken))}};
}

Json value(const std::optional<Endings>& ended) {
  if (!ended.has_value()) return nullptr;
  return {{"stop", ended->stop},
          {"length", ended->length},
          {"abort", ended->abort},
          {"error", ended->error},
          {"other", ended->other}};
}

Json figures(const Reading& reading) {
  return {{"elapsed_seconds", value(reading.elapsed)},
          {"restarted", reading.restarted},
          {"engines", reading.engines.size()},
          {"running", value(reading.running)},
          {"waiting", value(reading.waiting)},
          {"kv_cache_usage", value(reading.kv_usage)},
          {"preemptions", value(reading.preemptions)},
          {"prompt_tokens", value(reading.prompt_tokens)},
          {"generation_tokens", value(reading.generation_tokens)},
          {"ended_requests", value(reading.ended)},
          {"prefix_hit_rate", value(reading.hit_rate())},
          {"tokens_per_step", value(reading.step_tokens)},
          {"ttft_seconds", value(reading.ttft)},
          {"inter_token_latency_seconds", value(reading.itl)},
          {"time_per_output_token_seconds", value(reading.tpot)},
          {"e2e_seconds", value(reading.e2e)},
          {"queue_seconds", value(reading.queue_time)},
          {"prefill_seconds", value(reading.prefill_time)},
          {"decode_seconds", value(reading.decode_time)},
          {"prompt_length", value(reading.prompt_length)},
          {"output_length", value(reading.output_length)},
          {"tensor_active", value(reading.tensor_active)},
          {"dram_active", value(reading.dram_active)}};
}

Json value(const Finding& finding) {
  Json evidence = Json::array();
  for (const Evidence& one : finding.evidence) {
    evidence.push_back({{"metric", one.metric},
                        {"value", value(one.value)},
                        {"text", one.text}});
  }
  Json levers = Json::array();
  for (const Lever& lever : finding.levers) {
    levers.push_back({{"parameter", lever.parameter},
                      {"change", lever.change},
                      {"moves", lever.moves}});
  }
  return {{"id", finding.id},
          {"title", finding.title},
          {"confidence", name_of(finding.confidence)},
          {"evidence", std::move(evidence)},
          {"cause", finding.cause},
          {"levers", std::move(levers)}};
}

}  // namespace

Json report_json(const Reading& reading, const Diagnosis& diagnosis) {
  Json findings = Json::array();
  for (const Finding& finding : diagnosis.findings)
    findings.push_back(value(finding));
  return {{"model", reading.model},
          {"state", name_of(diagnosis.state)},
          {"why", diagnosis.why},
          {"figures", figures(reading)},
          {"findings", std::move(findings)}};
}

}  // namespace vllm_metrics::doctor
