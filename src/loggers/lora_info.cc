#include "src/loggers/lora_info.h"

#include <algorithm>
#include <bit>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "src/registry/info_words.h"
#include "vllm_metrics/primitives/bank.h"

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

std::size_t LoraInfo::shared_sets(const StatLoggerOptions& options) {
  constexpr std::size_t kPastSets = 4;
  return static_cast<std::size_t>(options.lora_label_sets) + kPastSets;
}

LoraInfo::LoraInfo(const StatLoggerOptions& options,
                   std::shared_ptr<Banks> shared)
    : shared_(std::move(shared)),
      max_lora_(std::to_string(options.max_loras.value_or(0))),
      shown_sets_(static_cast<std::size_t>(options.lora_label_sets)),
      most_sets_(shared_ == nullptr ? shown_sets_ : shared_sets(options)),
      strict_(options.lora_strict),
      shown_(std::make_shared<const State>()) {
  // Banks that were used before start anew.
  for (std::size_t i = 0; shared_ != nullptr && i < most_sets_; ++i) {
    Bank::Section section(shared_->bank(i), 0.0);
    InfoWords::write(section, 0.0, {}, /*is_shown=*/false);
  }
}

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
  if (shared_ != nullptr)
    Bank::Section(shared_->bank(sets_.sets.back().bank), now).set({0}, now);
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
      const std::size_t bank = sets.size();
      sets.emplace_back().bank = bank;
    } else {
      std::rotate(sets.begin(), sets.begin() + 1, sets.end());
    }
    std::swap(sets.back().waiting, scratch_.waiting);
    std::swap(sets.back().running, scratch_.running);
  }
  sets.back().last_seen = now;
  if (shared_ != nullptr) {
    share(sets.back(), now, /*is_shown=*/true);
    if (sets.size() > shown_sets_) {
      const LabelSet& past =
          *(sets.end() - 1 - static_cast<std::ptrdiff_t>(shown_sets_));
      share(past, past.last_seen, /*is_shown=*/false);
    }
    return;
  }
  ++sets_.version;
  published_.back() = sets_;
  published_.publish();
}

// A list that is too long for its bank ends in "...", at the end of a name.
void LoraInfo::share(const LabelSet& set, double time, bool is_shown) {
  constexpr std::size_t kMostBytes = InfoWords::kTextBytes / 2 - 64;
  const auto append_list = [this](std::string_view name,
                                  std::string_view list) {
    if (list.size() <= kMostBytes) return InfoWords::append(text_, name, list);
    const auto end = list.substr(0, kMostBytes - 3).rfind(',');
    const auto fitting = end == std::string_view::npos ? 0 : end + 1;
    InfoWords::append(text_, name, list.substr(0, fitting), "...");
  };
  text_.clear();
  InfoWords::append(text_, "max_lora", max_lora_);
  append_list("running_lora_adapters", set.running);
  append_list("waiting_lora_adapters", set.waiting);
  Bank::Section section(shared_->bank(set.bank), time);
  InfoWords::write(section, time, text_, is_shown);
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
