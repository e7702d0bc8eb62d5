#include "src/loggers/lora_info.h"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

namespace vllm_metrics::inline v0 {

// The times of some label sets: those of the past are known, the newest has
// that of the latest step.
class LoraInfo::Source final : public SnapshotSource {
 public:
  Source(std::vector<double> past,
         std::shared_ptr<const std::atomic<double>> latest)
      : past_(std::move(past)), latest_(std::move(latest)) {}

  void read(std::span<std::uint64_t> words) const noexcept override {
    std::ranges::transform(past_, words.begin(), [](double time) {
      return std::bit_cast<std::uint64_t>(time);
    });
    words.back() =
        std::bit_cast<std::uint64_t>(latest_->load(std::memory_order_relaxed));
  }

 private:
  std::vector<double> past_;
  std::shared_ptr<const std::atomic<double>> latest_;
};

LoraInfo::LoraInfo(const StatLoggerOptions& options)
    : max_lora_(std::to_string(options.max_loras.value_or(0))),
      most_sets_(static_cast<std::size_t>(options.lora_label_sets)),
      strict_(options.lora_strict),
      shown_(std::make_shared<const State>()) {}

void LoraInfo::join(const std::vector<LoraAdapterCount>& adapters,
                    std::string& out) const {
  out.clear();
  for (const LoraAdapterCount& adapter : adapters) {
    if (strict_ && adapter.num_requests <= 0) continue;
    if (!out.empty()) out += ',';
    out += adapter.name;
  }
}

void LoraInfo::record(const SchedulerStats& scheduler, double now) {
  join(scheduler.waiting_lora_adapters, scratch_.waiting);
  join(scheduler.running_lora_adapters, scratch_.running);
  const bool same = !sets_.sets.empty() &&
                    sets_.sets.back().waiting == scratch_.waiting &&
                    sets_.sets.back().running == scratch_.running;
  if (!same) supersede(now);
  latest_step_->store(now, std::memory_order_relaxed);
}

// Strings move in a ring, so that their memory is used again.
void LoraInfo::supersede(double now) {
  auto& sets = sets_.sets;
  if (!sets.empty())
    sets.back().last_seen = latest_step_->load(std::memory_order_relaxed);
  const auto known = std::ranges::find_if(sets, [&](const LabelSet& set) {
    return set.waiting == scratch_.waiting && set.running == scratch_.running;
  });
  if (known != sets.end()) {
    std::rotate(known, known + 1, sets.end());
  } else {
    if (sets.size() < most_sets_) {
      sets.emplace_back();
    } else {
      std::rotate(sets.begin(), sets.begin() + 1, sets.end());
    }
    std::swap(sets.back(), scratch_);
  }
  sets.back().last_seen = now;
  ++sets_.version;
  published_.back() = sets_;
  published_.publish();
}

std::shared_ptr<const ChangingSource::State> LoraInfo::current() const {
  const MutexLock lock(reader_mutex_);
  const LabelSets& latest = published_.read();
  if (latest.version == shown_version_) return shown_;
  auto state = std::make_shared<State>();
  std::vector<double> past;
  for (const LabelSet& set : latest.sets) {
    state->series.push_back(
        {.labels = normalized(Labels{{"max_lora", max_lora_},
                                     {"running_lora_adapters", set.running},
                                     {"waiting_lora_adapters", set.waiting}}),
         .offset = static_cast<std::uint32_t>(past.size())});
    past.push_back(set.last_seen);
  }
  past.pop_back();
  state->word_count = latest.sets.size();
  state->source = std::make_shared<Source>(std::move(past), latest_step_);
  shown_version_ = latest.version;
  shown_ = std::move(state);
  return shown_;
}

}  // namespace vllm_metrics::inline v0
