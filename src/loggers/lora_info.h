#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/loggers/latest_value.h"
#include "src/registry/mutex.h"
#include "vllm_metrics/loggers/options.h"
#include "vllm_metrics/registry/banks.h"
#include "vllm_metrics/registry/registry.h"
#include "vllm_metrics/stats/scheduler_stats.h"

namespace vllm_metrics::inline v0 {

// The series of vllm:lora_requests_info of one engine: the newest adapter
// lists as labels, the time of the latest step with them as value. As many
// older ones as the options keep stay with the time they were last seen.
//
// Thread-safety: record() by one thread at a time, never waiting for current().
class LoraInfo final : public ChangingSource {
 public:
  // `shared`: banks for shared_sets() label sets, or null: then the registry
  // asks current().
  LoraInfo(const StatLoggerOptions& options, std::shared_ptr<Banks> shared);

  // How many label sets an engine has where processes share them: those shown,
  // and some of the past, of which another process may show the like.
  static std::size_t shared_sets(const StatLoggerOptions& options);

  // `now`: wall clock, seconds since 1970.
  void record(const SchedulerStats& scheduler, double now);

  std::shared_ptr<const State> current() const override;

 private:
  struct LabelSet {
    std::string waiting;  // adapter names joined with ","
    std::string running;
    double last_seen = 0.0;  // of the newest: when it appeared
    std::size_t bank = 0;    // of `shared_`
  };
  // Oldest first; the newest is in force. `version` tells two states apart.
  struct LabelSets {
    std::vector<LabelSet> sets;
    std::uint64_t version = 0;
  };
  class Source;

  void join(const std::vector<LoraAdapterCount>& adapters,
            std::string& out) const;
  void supersede(double now);
  void share(const LabelSet& set, double time, bool is_shown);

  const std::shared_ptr<Banks> shared_;
  const std::string max_lora_;
  const std::size_t shown_sets_;
  const std::size_t most_sets_;
  const bool strict_;

  // The writer's.
  LabelSets sets_;
  LabelSet scratch_;
  std::string text_;

  // Time of the latest step; shared with the sources that scrapes hold.
  std::shared_ptr<std::atomic<double>> latest_step_ =
      std::make_shared<std::atomic<double>>(0.0);

  mutable LatestValue<LabelSets> published_;
  mutable Mutex reader_mutex_;
  mutable std::uint64_t shown_version_ ABSL_GUARDED_BY(reader_mutex_) = 0;
  mutable std::shared_ptr<const State> shown_ ABSL_GUARDED_BY(reader_mutex_);
};

}  // namespace vllm_metrics::inline v0
