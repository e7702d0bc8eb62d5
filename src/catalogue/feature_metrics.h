#pragma once

#include "vllm_metrics/catalogue/metric_spec.h"

namespace vllm_metrics::inline v0 {

// What is on the page only with a feature of the engine.
// A part of the catalogue.

inline constexpr double kBlockResidency[] = {
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05,  0.1,   0.2,   0.5,    1.0,   2.0,
    5.0,   10.0,  20.0,  30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0};
inline constexpr double kNixlXferTimes[] = {
    0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 5.0};
inline constexpr double kNixlPostTimes[] = {
    0.001, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 5.0};
inline constexpr double kNixlBytes[] = {
    2048.0,      8192.0,      32768.0,      131072.0,
    524288.0,    2097152.0,   8388608.0,    33554432.0,
    134217728.0, 536870912.0, 2147483648.0, 8589934592.0};
inline constexpr double kNixlDescriptors[] = {
    10.0,  20.0,   30.0,   50.0,   75.0,    100.0,   200.0,
    400.0, 1000.0, 2000.0, 4000.0, 10000.0, 20000.0, 50000.0};

inline constexpr MetricSpec kFeatureMetrics[] = {
    // --- Life of a sampled KV cache block, one sample each when it is evicted
    {.id = MetricId::kKvBlockLifetime,
     .name = "vllm:kv_block_lifetime_seconds",
     .kind = MetricKind::kHistogram,
     .unit = "seconds",
     .help = "Time from a KV block's allocation to its eviction, for a sample "
             "of the blocks.",
     .condition = Condition::kKvCacheMetrics,
     .buckets = kBlockResidency},
    {.id = MetricId::kKvBlockIdleBeforeEvict,
     .name = "vllm:kv_block_idle_before_evict_seconds",
     .kind = MetricKind::kHistogram,
     .unit = "seconds",
     .help = "Time from the last use of a KV block to its eviction, for a "
             "sample of the blocks.",
     .condition = Condition::kKvCacheMetrics,
     .buckets = kBlockResidency},
    {.id = MetricId::kKvBlockReuseGap,
     .name = "vllm:kv_block_reuse_gap_seconds",
     .kind = MetricKind::kHistogram,
     .unit = "seconds",
     .help = "Time between the last few uses of a KV block, for a sample of "
             "the blocks; up to three samples each.",
     .condition = Condition::kKvCacheMetrics,
     .buckets = kBlockResidency},

    // --- Speculative decoding ----------------------------------------------
    {.id = MetricId::kSpecDecodeNumDrafts,
     .name = "vllm:spec_decode_num_drafts",
     .kind = MetricKind::kCounter,
     .unit = "drafts",
     .help = "Drafts of speculative tokens that the model verified, one per "
             "request and step.",
     .condition = Condition::kSpeculative},
    {.id = MetricId::kSpecDecodeNumDraftTokens,
     .name = "vllm:spec_decode_num_draft_tokens",
     .kind = MetricKind::kCounter,
     .unit = "tokens",
     .help = "Speculative tokens proposed in verified drafts.",
     .condition = Condition::kSpeculative},
    {.id = MetricId::kSpecDecodeNumAcceptedTokens,
     .name = "vllm:spec_decode_num_accepted_tokens",
     .kind = MetricKind::kCounter,
     .unit = "tokens",
     .help = "Speculative tokens that the model accepted.",
     .condition = Condition::kSpeculative},
    {.id = MetricId::kSpecDecodeNumAcceptedTokensPerPos,
     .name = "vllm:spec_decode_num_accepted_tokens_per_pos",
     .kind = MetricKind::kCounter,
     .unit = "tokens",
     .help = "Accepted speculative tokens by their position in the draft, the "
             "first being 0.",
     .condition = Condition::kSpeculative,
     .extra_label = {"position", {}}},

    // --- Diffusion models --------------------------------------------------
    {.id = MetricId::kDiffusionNumDenoisingSteps,
     .name = "vllm:diffusion_num_denoising_steps",
     .kind = MetricKind::kCounter,
     .unit = "steps",
     .help = "Denoising steps run on canvases of tokens.",
     .condition = Condition::kDiffusion},
    {.id = MetricId::kDiffusionNumCanvasPositions,
     .name = "vllm:diffusion_num_canvas_positions",
     .kind = MetricKind::kCounter,
     .unit = "positions",
     .help = "Canvas positions evaluated, summed over denoising steps.",
     .condition = Condition::kDiffusion},
    {.id = MetricId::kDiffusionNumCommittedTokens,
     .name = "vllm:diffusion_num_committed_tokens",
     .kind = MetricKind::kCounter,
     .unit = "tokens",
     .help = "Tokens that denoising has committed to the output.",
     .condition = Condition::kDiffusion},

    // --- KV transfer by NIXL -----------------------------------------------
    {.id = MetricId::kNixlXferTime,
     .name = "vllm:nixl_xfer_time_seconds",
     .kind = MetricKind::kHistogram,
     .unit = "seconds",
     .help = "Time of a successful KV transfer.",
     .condition = Condition::kKvConnector,
     .connector = "nixl",
     .buckets = kNixlXferTimes},
    {.id = MetricId::kNixlPostTime,
     .name = "vllm:nixl_post_time_seconds",
     .kind = MetricKind::kHistogram,
     .unit = "seconds",
     .help =
         "Time to post a successful KV transfer, before it runs on its own.",
     .condition = Condition::kKvConnector,
     .connector = "nixl",
     .buckets = kNixlPostTimes},
    {.id = MetricId::kNixlBytesTransferred,
     .name = "vllm:nixl_bytes_transferred",
     .kind = MetricKind::kHistogram,
     .unit = "bytes",
     .help = "Size of a successful KV transfer.",
     .condition = Condition::kKvConnector,
     .connector = "nixl",
     .buckets = kNixlBytes},
    {.id = MetricId::kNixlNumDescriptors,
     .name = "vllm:nixl_num_descriptors",
     .kind = MetricKind::kHistogram,
     .unit = "descriptors",
     .help = "Memory descriptors of a successful KV transfer.",
     .condition = Condition::kKvConnector,
     .connector = "nixl",
     .buckets = kNixlDescriptors},
    {.id = MetricId::kNixlNumFailedTransfers,
     .name = "vllm:nixl_num_failed_transfers",
     .kind = MetricKind::kCounter,
     .unit = "transfers",
     .help = "KV transfers that failed.",
     .condition = Condition::kKvConnector,
     .connector = "nixl"},
    {.id = MetricId::kNixlNumFailedNotifications,
     .name = "vllm:nixl_num_failed_notifications",
     .kind = MetricKind::kCounter,
     .unit = "notifications",
     .help = "Notifications of a finished KV transfer that failed.",
     .condition = Condition::kKvConnector,
     .connector = "nixl"},
    {.id = MetricId::kNixlNumKvExpiredReqs,
     .name = "vllm:nixl_num_kv_expired_reqs",
     .kind = MetricKind::kCounter,
     .unit = "requests",
     .help = "Requests whose KV blocks expired before the other side fetched "
             "them, counted where prefill ran.",
     .condition = Condition::kKvConnector,
     .connector = "nixl"},
    {.id = MetricId::kNixlNumNotificationsAfterExpiry,
     .name = "vllm:nixl_num_notifications_after_expiry",
     .kind = MetricKind::kCounter,
     .unit = "notifications",
     .help = "Notifications that KV blocks were fetched, which came when these "
             "had already expired.",
     .condition = Condition::kKvConnector,
     .connector = "nixl",
     .since = {0, 32},
     .note = "after 0.30; which release brought it is not known"},
};

}  // namespace vllm_metrics::inline v0
