#include "vllm_metrics/loggers/prometheus_stat_logger.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "src/loggers/bank_layout.h"
#include "src/loggers/engine_index_map.h"
#include "src/loggers/lora_info.h"
#include "src/loggers/options_check.h"
#include "src/loggers/request_exemplar.h"
#include "src/loggers/step_writer.h"
#include "vllm_metrics/catalogue/catalogue.h"
#include "vllm_metrics/registry/banks.h"
#include "vllm_metrics/registry/registry.h"
#include "vllm_metrics/stats/saturating_add.h"

namespace vllm_metrics::inline v0 {
namespace {

// Writes one step into an engine's bank; visible as a whole when it ends.
class StepSection {
 public:
  StepSection(const BankLayout& layout, Bank bank, double now)
      : layout_(layout), section_(bank, now) {}

  // Last of all, what could not be taken.
  ~StepSection() {
    if (!layout_.has(MetricId::kRejectedSamples)) return;
    const SampleFaults faults = section_.faults();
    inc(MetricId::kRejectedSamples, faults.negative_increments, 0);
    inc(MetricId::kRejectedSamples, faults.not_finite, 1);
    inc(MetricId::kRejectedSamples, faults.negative_observations, 2);
    inc(MetricId::kRejectedSamples, unset_timestamps_, 3);
    inc(MetricId::kRejectedSamples, wrong_metric_, 4);
    inc(MetricId::kRejectedSamples, invalid_drafts_, 5);
    inc(MetricId::kRejectedSamples, dropped_evictions_, 6);
    inc(MetricId::kRejectedSamples, other_connector_, 7);
  }
  StepSection(const StepSection&) = delete;
  StepSection& operator=(const StepSection&) = delete;

  // The first section of a bank.
  void begin(bool is_new) {
    if (is_new) layout_.begin(section_);
    record(SleepState{});
  }
  void record(const SchedulerStats& scheduler);
  void record(const SpecDecodingStats& spec, bool is_diffusion);
  void record(const MultiModalCacheStats& mm_cache);
  void record(const IterationStats& iteration);
  void record(const SleepState& state);
  void count_other_connector() { ++other_connector_; }

  // What `write` writes through a StepWriter to some of the own metrics.
  template <class Write>
  void write_own(std::span<const BankLayout::Own> own, Write write) {
    StepWriter::State state{section_, own};
    StepWriter writer(state);
    write(writer);
    wrong_metric_ += state.wrong_metric;
    other_connector_ += state.other_connector;
  }

 private:
  template <class Number>
  void inc(MetricId id, Number n, std::size_t label_value = 0) {
    if constexpr (std::is_floating_point_v<Number>) {
      section_.inc(layout_.counter(id, label_value), n);
    } else if (n != 0) {
      section_.inc(layout_.counter(id, label_value),
                   static_cast<std::int64_t>(n));
    }
  }
  template <class Number>
  void set(MetricId id, Number v, std::size_t label_value = 0) {
    section_.set(layout_.gauge(id, label_value), static_cast<double>(v));
  }
  template <class Number>
  void observe(MetricId id, Number v) {
    section_.observe(layout_.histogram(id), static_cast<double>(v));
  }
  void observe_all(MetricId id, std::span<const double> values) {
    section_.observe(layout_.histogram(id), values);
  }
  void observe_phase(MetricId id, std::optional<double> seconds) {
    if (seconds.has_value()) {
      observe(id, *seconds);
    } else {
      ++unset_timestamps_;
    }
  }
  void record_finished(const FinishedRequestStats& finished);
  void keep_exemplars(const FinishedRequestStats& finished);

  const BankLayout& layout_;
  Bank::Section section_;
  std::uint64_t unset_timestamps_ = 0;
  std::uint64_t wrong_metric_ = 0;
  std::int64_t invalid_drafts_ = 0;
  std::int64_t dropped_evictions_ = 0;
  std::uint64_t other_connector_ = 0;
};

void StepSection::record(const SchedulerStats& scheduler) {
  set(MetricId::kNumRequestsRunning, scheduler.num_running_reqs);
  set(MetricId::kNumRequestsWaiting,
      saturating_add(scheduler.num_waiting_reqs,
                     scheduler.num_skipped_waiting_reqs));
  set(MetricId::kNumRequestsWaitingByReason, scheduler.num_waiting_reqs, 0);
  set(MetricId::kNumRequestsWaitingByReason, scheduler.num_skipped_waiting_reqs,
      1);
  if (layout_.has(MetricId::kNumRequestsKvFetchByStage)) {
    const KvFetchStages& fetches = scheduler.kv_fetch_stages;
    set(MetricId::kNumRequestsKvFetchByStage, fetches.waiting_to_start, 0);
    set(MetricId::kNumRequestsKvFetchByStage, fetches.in_progress, 1);
    set(MetricId::kNumRequestsKvFetchByStage, fetches.completed_waiting, 2);
  }
  set(MetricId::kKvCacheUsagePerc, scheduler.kv_cache_usage);
  inc(MetricId::kPrefixCacheQueries, scheduler.prefix_cache_stats.queries);
  inc(MetricId::kPrefixCacheHits, scheduler.prefix_cache_stats.hits);
  if (scheduler.connector_prefix_cache_stats.has_value()) {
    inc(MetricId::kExternalPrefixCacheQueries,
        scheduler.connector_prefix_cache_stats->queries);
    inc(MetricId::kExternalPrefixCacheHits,
        scheduler.connector_prefix_cache_stats->hits);
  }
  if (scheduler.perf_stats.has_value() && !scheduler.perf_stats->empty()) {
    inc(MetricId::kEstimatedFlopsPerGpu,
        scheduler.perf_stats->num_flops_per_gpu);
    inc(MetricId::kEstimatedReadBytesPerGpu,
        scheduler.perf_stats->num_read_bytes_per_gpu);
    inc(MetricId::kEstimatedWriteBytesPerGpu,
        scheduler.perf_stats->num_write_bytes_per_gpu);
  }
  if (!layout_.has(MetricId::kKvBlockLifetime)) return;
  dropped_evictions_ += scheduler.num_dropped_eviction_events;
  for (const KvCacheEvictionEvent& event : scheduler.kv_cache_eviction_events) {
    observe(MetricId::kKvBlockLifetime, event.lifetime_seconds);
    observe(MetricId::kKvBlockIdleBeforeEvict, event.idle_seconds);
    observe_all(MetricId::kKvBlockReuseGap, event.reuse_gaps_seconds());
  }
}

void StepSection::record(const SpecDecodingStats& spec, bool is_diffusion) {
  if (is_diffusion) {
    invalid_drafts_ += spec.num_invalid_drafts;
    inc(MetricId::kDiffusionNumDenoisingSteps, spec.num_drafts);
    inc(MetricId::kDiffusionNumCanvasPositions, spec.num_draft_tokens);
    inc(MetricId::kDiffusionNumCommittedTokens, spec.num_accepted_tokens);
    return;
  }
  if (!layout_.has(MetricId::kSpecDecodeNumDrafts)) return;
  invalid_drafts_ += spec.num_invalid_drafts;
  inc(MetricId::kSpecDecodeNumDrafts, spec.num_drafts);
  inc(MetricId::kSpecDecodeNumDraftTokens, spec.num_draft_tokens);
  inc(MetricId::kSpecDecodeNumAcceptedTokens, spec.num_accepted_tokens);
  const auto& per_pos = spec.num_accepted_tokens_per_pos;
  for (std::size_t i = 0; i < per_pos.size(); ++i) {
    if (i < layout_.positions()) {
      inc(MetricId::kSpecDecodeNumAcceptedTokensPerPos, per_pos[i], i);
    } else if (per_pos[i] != 0) {
      ++wrong_metric_;  // a position that was not configured
    }
  }
}

void StepSection::record(const MultiModalCacheStats& mm_cache) {
  inc(MetricId::kMmCacheQueries, mm_cache.queries);
  inc(MetricId::kMmCacheHits, mm_cache.hits);
}

void StepSection::record(const IterationStats& iteration) {
  const PromptTokenStats& prompt = iteration.prompt_token_stats;
  if (layout_.has(MetricId::kCorruptedRequests))
    inc(MetricId::kCorruptedRequests, iteration.num_corrupted_reqs);
  inc(MetricId::kNumPreemptions, iteration.num_preempted_reqs);
  inc(MetricId::kPromptTokens, prompt.total);
  inc(MetricId::kPromptTokensBySource, prompt.computed, 0);
  inc(MetricId::kPromptTokensBySource, prompt.local_cache_hit, 1);
  inc(MetricId::kPromptTokensBySource, prompt.external_kv_transfer, 2);
  inc(MetricId::kPromptTokensCached, prompt.cached_tokens);
  if (layout_.has(MetricId::kPromptTokensCachedBySource)) {
    inc(MetricId::kPromptTokensCachedBySource, prompt.local_cache_hit, 0);
    inc(MetricId::kPromptTokensCachedBySource, prompt.host_cached, 1);
    inc(MetricId::kPromptTokensCachedBySource, prompt.p2p_cached, 2);
    inc(MetricId::kPromptTokensCachedBySource, prompt.disk_cached, 3);
    inc(MetricId::kPromptTokensCachedBySource, prompt.external_unspecified(),
        4);
  }
  inc(MetricId::kGenerationTokens, iteration.num_generation_tokens);
  observe(MetricId::kIterationTokens,
          saturating_add(prompt.computed, iteration.num_generation_tokens));
  for (const auto tokens : iteration.max_num_generation_tokens_iter) {
    observe(MetricId::kRequestMaxNumGenerationTokens, tokens);
  }
  for (const auto n : iteration.n_params_iter)
    observe(MetricId::kRequestParamsN, n);
  observe_all(MetricId::kTimeToFirstToken, iteration.time_to_first_tokens_iter);
  observe_all(MetricId::kInterTokenLatency,
              iteration.inter_token_latencies_iter);
  for (const FinishedRequestStats& finished : iteration.finished_requests)
    record_finished(finished);
  if (layout_.exemplars().empty()) [[likely]]
    return;
  for (const FinishedRequestStats& finished : iteration.finished_requests)
    keep_exemplars(finished);
}

void StepSection::record_finished(const FinishedRequestStats& finished) {
  inc(MetricId::kRequestSuccess, 1, index_of(finished.finish_reason));
  observe(MetricId::kE2eRequestLatency, finished.e2e_latency);
  observe_phase(MetricId::kRequestQueueTime, finished.queued_time);
  observe_phase(MetricId::kRequestPrefillTime, finished.prefill_time);
  observe_phase(MetricId::kRequestInferenceTime, finished.inference_time);
  observe_phase(MetricId::kRequestDecodeTime, finished.decode_time);
  observe(MetricId::kRequestTimePerOutputToken,
          finished.mean_time_per_output_token);
  observe(MetricId::kRequestPromptTokens, finished.num_prompt_tokens);
  observe(
      MetricId::kRequestPrefillKvComputedTokens,
      saturating_sub(finished.num_prompt_tokens,
                     std::max<std::int64_t>(finished.num_cached_tokens, 0)));
  observe(MetricId::kRequestGenerationTokens, finished.num_generation_tokens);
  if (finished.max_tokens_param.value_or(0) != 0) {
    observe(MetricId::kRequestParamsMaxTokens, *finished.max_tokens_param);
  }
  if (layout_.has(MetricId::kRequestNumPreemptions)) {
    observe(MetricId::kRequestNumPreemptions, finished.num_preemptions);
  }
}

// An exemplar is followed to its trace, so it has one that was sampled.
void StepSection::keep_exemplars(const FinishedRequestStats& finished) {
  if (!finished.trace.valid() || !finished.trace.sampled()) return;
  Exemplar exemplar = exemplar_of(finished);
  for (const BankLayout::Exemplars& kept : layout_.exemplars()) {
    const std::optional<double> seconds = latency_of(finished, kept.id);
    if (!seconds.has_value() || !std::isfinite(*seconds)) continue;
    exemplar.value = std::max(*seconds, 0.0);  // as it was counted
    section_.keep(kept.first, *kept.bounds, exemplar);
  }
}

void StepSection::record(const SleepState& state) {
  const bool asleep = state.sleep == 1;
  set(MetricId::kEngineSleepState, asleep ? 0 : 1, 0);
  set(MetricId::kEngineSleepState, asleep && state.level == 1 ? 1 : 0, 1);
  set(MetricId::kEngineSleepState, asleep && state.level == 2 ? 1 : 0, 2);
}

// Gauges have the time of their setting, 0 for none, and the latest one counts
// where processes share them: a clock that shows nonsense is an early one.
constexpr double kEarliest = std::numeric_limits<double>::min();

bool is_time(double now) {
  return now >= kEarliest && now <= std::numeric_limits<double>::max();
}

}  // namespace

struct PrometheusStatLogger::State {
  State(StatLoggerOptions given, BankLayout made)
      : options(std::move(given)),
        layout(std::move(made)),
        places(options.engine_indexes) {}

  StepSection section(std::size_t engine) const {
    const double now = options.clock->coarse_wall();
    return {layout, banks->bank(engine), is_time(now) ? now : kEarliest};
  }

  absl::Status add_banks();
  absl::Status add_lora_info();
  absl::Status add_admission_rejections();
  absl::Status add_operations(MetricId id);
  void record(const SchedulerStats& scheduler, std::size_t engine,
              StepSection& section);

  StatLoggerOptions options;
  BankLayout layout;
  EngineIndexMap places;
  std::shared_ptr<Banks> banks;
  Registration registration;
  std::vector<std::shared_ptr<LoraInfo>> lora_infos;  // one each, or none
  std::vector<Registration> lora_registrations;
  std::vector<Handle<Gauge>> cache_config_info;
  std::vector<Handle<Counter>> admission_rejections;  // by limit, or none
  std::vector<Handle<Histogram>> operations;  // by EngineOperation, or none
};

// The features that not every engine has.
void PrometheusStatLogger::State::record(const SchedulerStats& scheduler,
                                         std::size_t engine,
                                         StepSection& section) {
  section.record(scheduler);
  if (scheduler.spec_decoding_stats.has_value()) {
    section.record(*scheduler.spec_decoding_stats, options.is_diffusion);
  }
  const KvConnectorStats* transfer = scheduler.kv_connector_stats;
  if (transfer != nullptr && options.kv_connector != nullptr) {
    if (transfer->connector() == options.kv_connector->connector()) {
      section.write_own(layout.connector(), [&](StepWriter& writer) {
        options.kv_connector->record(*transfer, writer);
      });
    } else {
      section.count_other_connector();
    }
  }
  if (!lora_infos.empty()) {
    lora_infos[engine]->record(scheduler, options.clock->wall());
  }
}

absl::Status PrometheusStatLogger::State::add_banks() {
  const std::size_t engines = options.engine_indexes.size();
  auto families = layout.schema(options);
  auto made =
      options.registry->make_banks(families, engines, layout.cell_count());
  if (!made.ok()) return made.status();
  banks = *std::move(made);
  for (std::size_t engine = 0; engine < engines; ++engine) {
    StepSection first = section(engine);
    first.begin(banks->is_new());
    if (options.kv_connector != nullptr) {
      first.write_own(layout.connector(), [&](StepWriter& writer) {
        options.kv_connector->begin(writer);
      });
    }
  }
  auto added = options.registry->add(std::move(families), banks);
  if (!added.ok()) return added.status();
  registration = *std::move(added);
  return absl::OkStatus();
}

absl::Status PrometheusStatLogger::State::add_lora_info() {
  if (!options.max_loras.has_value()) return absl::OkStatus();
  if (options.engine_indexes.size() > 1 &&
      options.log_sink->minimum_level() <= LogLevel::kWarning) {
    options.log_sink->write(
        LogLevel::kWarning, options.clock->wall(), LogSink::kNoEngine,
        "vllm:lora_requests_info prometheus metrics may be "
        "incorrect/misleading with data parallel deployments.");
  }
  const Family family = family_of(spec_of(MetricId::kLoraRequestsInfo));
  for (std::size_t i = 0; i < options.engine_indexes.size(); ++i) {
    auto shared = options.registry->make_info_banks(
        family, LoraInfo::shared_sets(options));
    if (!shared.ok()) return shared.status();
    const bool is_shared = *shared != nullptr;
    lora_infos.push_back(
        std::make_shared<LoraInfo>(options, *std::move(shared)));
    if (is_shared) continue;
    auto added = options.registry->add(family, lora_infos.back());
    if (!added.ok()) return added.status();
    lora_registrations.push_back(*std::move(added));
  }
  return absl::OkStatus();
}

absl::Status PrometheusStatLogger::State::add_admission_rejections() {
  const MetricSpec& spec = spec_of(MetricId::kAdmissionRejections);
  if (spec.since > options.wire_version) return absl::OkStatus();
  for (const std::string_view reason : spec.extra_label.values) {
    auto counter = options.registry->add_counter(
        family_of(spec),
        {{"model_name", options.model_name},
         {std::string(spec.extra_label.name), std::string(reason)}});
    if (!counter.ok()) return counter.status();
    admission_rejections.push_back(*std::move(counter));
  }
  return absl::OkStatus();
}

// Without a model's name: of two loggers on one page the first has them.
absl::Status PrometheusStatLogger::State::add_operations(MetricId id) {
  const MetricSpec& spec = spec_of(id);
  if (spec.since > options.wire_version) return absl::OkStatus();
  const auto named =
      std::ranges::find(options.buckets, spec.name, &BucketOverride::family);
  const std::span<const double> bounds =
      named != options.buckets.end() ? named->bounds : spec.buckets;
  for (const std::string_view operation : spec.extra_label.values) {
    auto histogram = options.registry->add_histogram(
        family_of(spec), bounds,
        {{std::string(spec.extra_label.name), std::string(operation)}});
    if (absl::IsAlreadyExists(histogram.status())) {
      options.log_sink->write(LogLevel::kWarning, options.clock->wall(),
                              LogSink::kNoEngine,
                              std::string(histogram.status().message()));
      return absl::OkStatus();
    }
    if (!histogram.ok()) return histogram.status();
    operations.push_back(*std::move(histogram));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<PrometheusStatLogger::State>>
PrometheusStatLogger::prepare(const StatLoggerOptions& given) {
  auto options = checked(given);
  if (!options.ok()) return options.status();
  if (options->registry == nullptr)
    return absl::InvalidArgumentError(
        "registry is null; allowed: Registry::create()");
  auto layout = BankLayout::create(*options);
  if (!layout.ok()) return layout.status();
  auto state = std::make_shared<State>(*std::move(options), *std::move(layout));
  if (auto status = state->add_banks(); !status.ok()) return status;
  if (auto status = state->add_lora_info(); !status.ok()) return status;
  if (auto status = state->add_admission_rejections(); !status.ok())
    return status;
  for (const MetricId id : {MetricId::kSleepModeOperationDuration,
                            MetricId::kRlWeightUpdateOperationDuration}) {
    if (auto status = state->add_operations(id); !status.ok()) return status;
  }
  return state;
}

absl::StatusOr<std::unique_ptr<PrometheusStatLogger>>
PrometheusStatLogger::create(const StatLoggerOptions& options) {
  auto state = prepare(options);
  if (!state.ok()) return state.status();
  return std::make_unique<PrometheusStatLogger>(*std::move(state));
}

PrometheusStatLogger::PrometheusStatLogger(
    std::shared_ptr<State> state) noexcept
    : state_(std::move(state)) {}
PrometheusStatLogger::~PrometheusStatLogger() = default;

void PrometheusStatLogger::record(const StepRecord& step) {
  const auto engine = state_->places.find(step.engine_index);
  if (!engine.has_value()) return;
  StepSection section = state_->section(*engine);
  if (step.scheduler != nullptr) {
    state_->record(*step.scheduler, *engine, section);
  }
  if (step.mm_cache != nullptr) section.record(*step.mm_cache);
  if (step.iteration != nullptr) section.record(*step.iteration);
  const auto& write = state_->options.step_metrics.write;
  if (write != nullptr) {
    section.write_own(state_->layout.own(),
                      [&](StepWriter& writer) { write(step, writer); });
  }
}

void PrometheusStatLogger::log_engine_initialized() {
  const MetricSpec& spec = spec_of(MetricId::kCacheConfigInfo);
  std::vector<Handle<Gauge>> infos;
  for (const int engine_index : state_->options.engine_indexes) {
    Labels labels{{"engine", std::to_string(engine_index)}};
    for (const auto& [key, value] : state_->options.cache_config)
      labels.push_back({key, value});
    auto info =
        state_->options.registry->add_gauge(family_of(spec), std::move(labels));
    if (!info.ok()) {
      state_->options.log_sink->write(
          LogLevel::kWarning, state_->options.clock->wall(), engine_index,
          std::string(info.status().message()));
      continue;
    }
    (*info)->set(1.0);
    infos.push_back(*std::move(info));
  }
  state_->cache_config_info = std::move(infos);
}

void PrometheusStatLogger::record_admission_rejection(AdmissionLimit limit) {
  const auto at = static_cast<std::size_t>(limit);
  if (at < state_->admission_rejections.size())
    state_->admission_rejections[at]->inc();
}

void PrometheusStatLogger::record_operation(EngineOperation operation,
                                            double seconds) {
  const auto at = static_cast<std::size_t>(operation);
  if (at < state_->operations.size()) state_->operations[at]->observe(seconds);
}

void PrometheusStatLogger::record_sleep_state(const SleepState& sleep) {
  for (std::size_t engine = 0; engine < state_->options.engine_indexes.size();
       ++engine) {
    state_->section(engine).record(sleep);
  }
}

}  // namespace vllm_metrics::inline v0
