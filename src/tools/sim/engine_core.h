#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "src/tools/sim/kv_block_pool.h"
#include "src/tools/sim/request.h"
#include "src/tools/sim/step_time_model.h"
#include "src/tools/sim/virtual_time.h"
#include "vllm_metrics/stats/scheduler_stats.h"

namespace vllm_metrics::sim {

// What the scheduler goes by. Read anew in every step.
struct SchedulerParameters {
  std::int64_t max_num_batched_tokens = 8192;  // computed in one step
  std::int64_t max_num_seqs = 256;             // running at once
  std::int64_t max_model_len = 131072;         // prompt and output
  bool prefix_caching = true;
};

// One data-parallel rank: scheduler, KV cache and a model that takes its time,
// the way vLLM's V1 engine core goes about it, without the GPU.
//
// A step is begin_step(), then end_step() at the time that it returned.
// Requests are first come, first served; running ones go first, in the order of
// their admission. Prompts are computed in chunks of what the token budget
// leaves. When KV blocks run out, the running request admitted last is
// preempted: its blocks go, it waits at the front and is computed again.
class EngineCore {
 public:
  struct Options {
    std::int64_t block_size = 16;
    std::int64_t num_gpu_blocks = KvBlockPool::kUnlimited;
  };

  // What a request got out of a step. Valid until the next begin_step().
  struct Output {
    Request* request = nullptr;
    bool finished = false;
  };

  // `parameters` and `hardware` must outlive it.
  EngineCore(const Options& options, const SchedulerParameters& parameters,
             const Hardware& hardware);

  // Queues the request, or drops it and returns false when it could never be
  // served: longer than the model allows, or than the whole KV cache.
  bool add_request(std::unique_ptr<Request> request, Ticks now);

  bool has_requests() const { return !running_.empty() || !waiting_.empty(); }
  std::int64_t num_running() const { return std::ssize(running_); }
  std::int64_t num_waiting() const { return std::ssize(waiting_); }

  // Schedules a step that starts `now`; returns its end. Needs has_requests().
  Ticks begin_step(Ticks now);

  // The step is over: hands out its tokens.
  void end_step();
  const std::vector<Output>& outputs() const { return outputs_; }

  // The state now, with the prefix lookups since the last call.
  const SchedulerStats& take_stats();

  // Whether `request` can be served at all.
  bool fits(const RequestSpec& spec) const;

 private:
  struct PrefixMatch {
    std::vector<BlockId> blocks;  // reused for every lookup
    std::int64_t num_free = 0;    // of them, held by nobody
  };

  void schedule_running(Ticks now);
  void schedule_waiting(Ticks now);
  bool admit(Request& request, Ticks now);
  void look_up_prefix(const Request& request);
  bool make_room(Request& request, std::int64_t num_tokens, Ticks now);
  void schedule_tokens(Request& request, std::int64_t n);
  void preempt_last(Ticks now);
  void release_blocks(Request& request);
  std::int64_t blocks_for(std::int64_t num_tokens) const {
    return (num_tokens + block_size_ - 1) / block_size_;
  }

  const SchedulerParameters* parameters_;
  const Hardware* hardware_;
  std::int64_t block_size_;
  KvBlockPool pool_;

  std::deque<std::unique_ptr<Request>> waiting_;
  std::vector<std::unique_ptr<Request>> running_;   // in order of admission
  std::vector<std::unique_ptr<Request>> finished_;  // by the last step
  std::vector<Output> outputs_;
  SchedulerStats stats_;      // what take_stats() hands out
  PrefixCacheStats lookups_;  // since the last take_stats()

  // Of the step being scheduled.
  std::int64_t budget_ = 0;
  bool preempted_ = false;
  StepShape shape_;
  PrefixMatch match_;
};

}  // namespace vllm_metrics::sim
