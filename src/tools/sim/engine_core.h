#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "src/tools/sim/cuda_graphs.h"
#include "src/tools/sim/kv_block_pool.h"
#include "src/tools/sim/kv_offload.h"
#include "src/tools/sim/parameters.h"
#include "src/tools/sim/random.h"
#include "src/tools/sim/request.h"
#include "src/tools/sim/step_cost.h"
#include "src/tools/sim/virtual_time.h"
#include "vllm_metrics/stats/multi_connector_stats.h"
#include "vllm_metrics/stats/nixl_stats.h"
#include "vllm_metrics/stats/perf_context.h"
#include "vllm_metrics/stats/scheduler_stats.h"

namespace vllm_metrics::sim {

// One data-parallel rank: scheduler, KV cache and a model that takes its time,
// the way vLLM's V1 engine core goes about it, without the GPU.
//
// A step is begin_step(), then end_step() at the time that it returned.
// Requests are first come, first served; running ones go first, in the order of
// their admission. Prompts are computed in chunks of what the token budget
// leaves. When KV blocks run out, the running request admitted last is
// preempted: its blocks go, it waits at the front and is computed again.
//
// With KV transfer a prompt is not computed here: blocks are taken, its KV
// cache comes over one link, first come, first served, and the request runs
// when it is there. With offloading, blocks that the GPU gives up are kept
// beside it, and a request whose prefix is there waits for that part likewise.
class EngineCore {
 public:
  // What a request got out of a step. Valid until the next begin_step().
  struct Output {
    Request* request = nullptr;
    bool finished = false;
    std::int64_t num_new_tokens = 1;
  };
  using Requests = std::vector<std::unique_ptr<Request>>;

  // All three must outlive it. `seed`: of what the model accepts.
  EngineCore(const EngineParameters& engine,
             const SchedulerParameters& scheduler, const StepCostModel& cost,
             std::uint64_t seed);
  EngineCore(const EngineCore&) = delete;
  EngineCore& operator=(const EngineCore&) = delete;

  // Queues the request, or drops it and returns false when it could never be
  // served: longer than the model allows, or than the whole KV cache.
  bool add_request(std::unique_ptr<Request> request, Ticks now);

  bool has_requests() const { return num_running() + num_waiting() > 0; }
  std::int64_t num_running() const { return std::ssize(running_); }
  // Those whose prompt is on its way too.
  std::int64_t num_waiting() const {
    return std::ssize(waiting_) + std::ssize(fetched_) + num_deferred();
  }

  // Schedules a step that starts `now`; returns its end. Needs has_requests().
  Ticks begin_step(Ticks now);

  // The step is over: hands out its tokens.
  void end_step();
  const std::vector<Output>& outputs() const { return outputs_; }
  const StepCost& cost() const { return cost_; }  // of the latest step

  // Takes out the requests whose client has gone by `now`.
  Requests take_abandoned(Ticks now);

  // Takes out all requests, in order of their ids.
  Requests take_all();

  // The state now, with what happened since the last call.
  SchedulerStats& take_stats();

  // Whether `request` can be served at all.
  bool fits(const RequestSpec& spec) const;

 private:
  enum class Admission { kNoRoom, kRunning, kFetching };
  struct PrefixMatch {
    std::vector<BlockId> blocks;  // reused for every lookup
    std::int64_t num_free = 0;    // of them, held by nobody
  };

  std::int64_t num_deferred() const { return std::ssize(fetching_); }
  std::int64_t max_running() const;
  void schedule_running(Ticks now);
  void schedule_waiting(Ticks now);
  void schedule_fetched(Ticks now);
  Admission admit(Request& request, Ticks now);
  void look_up_prefix(const Request& request);
  void load_offloaded(Request& request);
  void fetch_prompt(Request& request, Ticks now);
  void store_evicted();
  KvFetchStages fetch_stages() const;
  void take_connector_stats();
  void take_arrived_prompts(Ticks now);
  std::int64_t chunk_of(const Request& request) const;
  std::int64_t drafts_for(const Request& request) const;
  void take_blocks(Request& request, std::int64_t num_tokens);
  bool make_room(Request& request, std::int64_t num_tokens, Ticks now);
  void schedule_tokens(Request& request, std::int64_t n);
  void preempt_last(Ticks now);
  void release_blocks(Request& request);
  void add_step_stats();
  std::int64_t draw_accepted(std::int64_t num_drafted);
  std::int64_t blocks_for(std::int64_t num_tokens) const {
    return (num_tokens + engine_->block_size - 1) / engine_->block_size;
  }

  const EngineParameters* engine_;
  const SchedulerParameters* scheduler_;
  const StepCostModel* cost_model_;
  KvBlockPool pool_;
  std::vector<KvOffload> offloads_;
  std::vector<std::uint64_t> evicted_;  // not yet offered to them
  CudaGraphs graphs_;
  Random random_;

  std::deque<std::unique_ptr<Request>> waiting_;
  std::deque<std::unique_ptr<Request>> fetching_;  // by the time of arrival
  std::deque<std::unique_ptr<Request>> fetched_;
  Requests running_;   // in order of admission
  Requests finished_;  // by the last step
  std::vector<Output> outputs_;
  Ticks link_free_ = 0;        // when the KV link has sent all it has to
  bool any_patience_ = false;  // a client may give up
  std::int64_t num_steps_ = 0;

  // What take_stats() hands out, and since its last call.
  SchedulerStats stats_;
  PrefixCacheStats lookups_;
  PrefixCacheStats connector_lookups_;
  NixlStats transfers_;
  NixlStats reported_transfers_;
  MultiConnectorStats connectors_;
  std::optional<SpecDecodingStats> drafts_;

  // Of the step being scheduled.
  std::int64_t budget_ = 0;
  bool preempted_ = false;
  bool reported_ = true;  // by take_stats()
  std::vector<ScheduledRequest> scheduled_;
  IterationDetails details_;
  StepCost cost_;
  PrefixMatch match_;
  std::vector<std::uint64_t> wanted_;  // hashes, reused for every lookup
};

}  // namespace vllm_metrics::sim
