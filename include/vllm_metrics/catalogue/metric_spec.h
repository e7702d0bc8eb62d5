#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "vllm_metrics/registry/family.h"

namespace vllm_metrics::inline v0 {

// A release of vLLM, e.g. {0, 30}: which families the page has.
struct WireVersion {
  int major = 0;
  int minor = 30;
  friend auto operator<=>(const WireVersion&, const WireVersion&) = default;
};

// Names a family of the catalogue in code; the wire name is in its spec.
enum class MetricId : std::uint8_t {
  kNumRequestsRunning,
  kNumRequestsWaiting,
  kNumRequestsWaitingByReason,
  kNumRequestsKvFetchByStage,
  kEngineSleepState,
  kKvCacheUsagePerc,
  kCorruptedRequests,
  kPrefixCacheQueries,
  kPrefixCacheHits,
  kExternalPrefixCacheQueries,
  kExternalPrefixCacheHits,
  kMmCacheQueries,
  kMmCacheHits,
  kNumPreemptions,
  kPromptTokens,
  kPromptTokensBySource,
  kPromptTokensCached,
  kPromptTokensCachedBySource,
  kGenerationTokens,
  kRequestSuccess,
  kAdmissionRejections,
  kSleepModeOperationDuration,
  kRlWeightUpdateOperationDuration,
  kEstimatedFlopsPerGpu,
  kEstimatedReadBytesPerGpu,
  kEstimatedWriteBytesPerGpu,
  kIterationTokens,
  kTimeToFirstToken,
  kInterTokenLatency,
  kRequestTimePerOutputToken,
  kE2eRequestLatency,
  kRequestQueueTime,
  kRequestInferenceTime,
  kRequestPrefillTime,
  kRequestDecodeTime,
  kRequestPromptTokens,
  kRequestGenerationTokens,
  kRequestMaxNumGenerationTokens,
  kRequestParamsN,
  kRequestParamsMaxTokens,
  kRequestPrefillKvComputedTokens,
  kRequestNumPreemptions,
  kKvBlockLifetime,
  kKvBlockIdleBeforeEvict,
  kKvBlockReuseGap,
  kSpecDecodeNumDrafts,
  kSpecDecodeNumDraftTokens,
  kSpecDecodeNumAcceptedTokens,
  kSpecDecodeNumAcceptedTokensPerPos,
  kDiffusionNumDenoisingSteps,
  kDiffusionNumCanvasPositions,
  kDiffusionNumCommittedTokens,
  kNixlXferTime,
  kNixlPostTime,
  kNixlBytesTransferred,
  kNixlNumDescriptors,
  kNixlNumFailedTransfers,
  kNixlNumFailedNotifications,
  kNixlNumKvExpiredReqs,
  kNixlNumNotificationsAfterExpiry,
  kKvOffloadLoadBytes,
  kKvOffloadLoadTime,
  kKvOffloadLoadSize,
  kKvOffloadStoreBytes,
  kKvOffloadStoreTime,
  kKvOffloadStoreSize,
  kKvOffloadLookupSyncDelay,
  kKvOffloadLookupAsyncDelay,
  kKvOffloadAllocationFailure,
  kKvOffloadTotalBytes,
  kKvOffloadTotalTime,
  kKvOffloadSize,
  kKvOffloadCpuCacheUsagePerc,
  kKvOffloadCpuCacheWriteUsagePerc,
  kKvOffloadCpuCacheReadUsagePerc,
  kKvOffloadStoresSkipped,
  kMooncakeStoreOperationTime,
  kMooncakeStoreOperation,
  kMooncakeStoreOperationKeys,
  kMooncakeStoreOperationBytes,
  kMooncakeStoreOperationFailedKeys,
  kSimpleKvOffloadSaveOutcomes,
  kSimpleKvOffloadLoadBlocks,
  kSimpleKvOffloadUsedBlocks,
  kSimpleKvOffloadPendingStoreBlocks,
  kSimpleKvOffloadInfo,
  kLoraRequestsInfo,
  kCacheConfigInfo,
  kRejectedSamples,
  kLoggerErrors,
  kUndeclaredEngineRecords,
  kSampledKvTransfers,
  kSharedProcesses,
  kTornBanks,
  kUnreadableSegments,
  kUnmergedSeries,
  kHttpRequests,
  kHttpResponseBytes,
  kHttpRenderSeconds,
  kHttpConnections,
  kHttpClosedConnections,
  kHttpAcceptErrors,
  kOtlpExports,
  kOtlpLostItems,
};

// When a family is on the page.
enum class Condition : std::uint8_t {
  kAlways,
  kNanCheck,           // the engine looks for NaN logits
  kKvCacheMetrics,     // the block pool samples the residency of its blocks
  kSpeculative,        // speculative decoding, and the model is not diffusion
  kDiffusion,          // a diffusion model
  kKvConnector,        // the KV connector of that name is in use
  kLora,               // LoRA adapters can be loaded
  kEngineInitialized,  // log_engine_initialized() was called
  kSelfMetrics,        // the library's own, unless switched off
  kHttpEndpoint,       // an http::Exposer serves the page, unless switched off
  kOtlpExporter,       // an exporter of otlp/ runs
};

// Whose series a family has.
enum class Scope : std::uint8_t {
  kEngine,    // labels model_name and engine, and the extra one if any
  kInfo,      // labels of its own, known at run time only
  kManager,   // label model_name, and the extra one if any
  kFrontEnd,  // the extra label alone
  kEndpoint,  // label address, and the extra one if any
  kExporter,  // label signal (metrics or traces), and the extra one
  kFolder,    // no label: of the processes that share a registry
};

// A label beside those of the scope. `values` is the closed set, in the order
// of the code that writes it; empty when the values are known at run time only.
struct ExtraLabel {
  std::string_view name;
  std::span<const std::string_view> values;
};

// Since when a family is on its way off the page, and what to use instead.
struct Lifecycle {
  std::optional<WireVersion> deprecated_in = {};
  std::string_view successor = {};
  bool stays_shown = false;  // vLLM never hides it, against its own policy
};

// One family of the catalogue.
struct MetricSpec {
  MetricId id = {};
  // On the wire; a counter's samples get `_total` behind it.
  std::string_view name = {};
  MetricKind kind = MetricKind::kGauge;
  CounterNumber number = CounterNumber::kInteger;
  // Of one sample: "seconds", "tokens", "requests", ...
  std::string_view unit = {};
  std::string_view help = {};  // own words: exactly what is counted, and when
  Condition condition = Condition::kAlways;
  std::string_view connector = {};  // with kKvConnector: of this connector
  Scope scope = Scope::kEngine;
  ExtraLabel extra_label = {};
  ExtraLabel second_label = {};  // beside extra_label; its values are closed
  // Histograms; empty: 1, 2, 5, 10, ... up to max_model_len.
  std::span<const double> buckets = {};
  // First release that has it; 0.27 stands for any before.
  WireVersion since = {0, 27};
  Lifecycle lifecycle = {};
  // Where a name or unit is vLLM's and not what one would expect.
  std::string_view note = {};
};

}  // namespace vllm_metrics::inline v0
