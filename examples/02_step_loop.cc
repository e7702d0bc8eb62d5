// How does my engine's step loop turn requests into statistics?
//
// A toy engine without a model: it queues requests, runs up to three at once,
// preempts one, loses a client, and serves one prompt with n = 2. The calls
// between the markers are what a real loop needs; they take times as arguments,
// so this one runs on a scripted clock and always shows the same page.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iostream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vllm_metrics/exposition/text_format.h"
#include "vllm_metrics/loggers/stat_logger_manager.h"

namespace {

using namespace vllm_metrics;
using EventType = EngineCoreEvent::Type;

// An engine takes Clock::system().
struct ScriptedClock : Clock {
  double wall() const noexcept override { return 1700000000.0 + now; }
  double monotonic() const noexcept override { return now; }
  double now = 100.0;
};

// What an engine keeps of a request: its own business, and beside it the
// statistics with the events that no output has carried yet.
struct Request {
  std::string id;
  std::int64_t tokens_left = 0;
  bool preempted = false;
  RequestStateStats stats = {};
  std::vector<EngineCoreEvent> events = {};
};

// A request that ended between two steps, until the next step tells of it.
struct Ended {
  FinishReason reason;
  double timestamp;  // engine clock
  std::vector<EngineCoreEvent> events;
  RequestStateStats stats;
};

class Engine {
 public:
  Engine(StatLoggerManager& manager, const Clock& clock)
      : manager_(manager), clock_(clock) {}

  void add(std::string id, std::int64_t prompt_tokens, std::int64_t max_tokens,
           std::shared_ptr<ParentRequest> parent = nullptr) {
    // [arrival]
    Request request{.id = std::move(id), .tokens_left = max_tokens};
    request.stats.arrival_time = clock_.wall();
    request.stats.num_prompt_tokens = prompt_tokens;
    request.stats.max_tokens_param = max_tokens;
    request.stats.parent = std::move(parent);  // null unless n > 1
    request.events.push_back({EventType::kQueued, clock_.monotonic()});
    waiting_.push_back(std::move(request));
    // [/arrival]
  }

  // The client of a waiting request went away.
  void cancel(const std::string& id) {
    const auto lost = std::ranges::find(waiting_, id, &Request::id);
    if (lost == waiting_.end()) return;
    // [cancel]
    ended_.push_back({FinishReason::kAbort, clock_.monotonic(),
                      std::move(lost->events), std::move(lost->stats)});
    waiting_.erase(lost);
    // [/cancel]
  }

  // Out of KV blocks: the request that came last has to start over.
  void preempt() {
    Request& last = running_.back();
    last.preempted = true;
    last.events.push_back({EventType::kPreempted, clock_.monotonic()});
    waiting_.push_front(std::move(last));
    running_.pop_back();
  }

  void schedule() {
    while (running_.size() < kSlots && !waiting_.empty()) {
      Request& next = waiting_.front();
      // [admission]
      next.events.push_back({EventType::kScheduled, clock_.monotonic()});
      scheduler_.prefix_cache_stats.record(next.stats.num_prompt_tokens,
                                           kCachedTokens, next.preempted);
      // [/admission]
      running_.push_back(std::move(next));
      waiting_.pop_front();
    }
  }

  // Called when the forward pass is done: each running request has one more
  // token.
  void step() {
    // [step]
    iteration_.reset(clock_.wall());
    const double step_end = clock_.monotonic();
    for (Ended& ended : ended_) {
      iteration_.update_from_events(ended.events, ended.stats);
      iteration_.update_from_ended_request(ended.reason, ended.timestamp,
                                           ended.stats);
    }
    ended_.clear();

    for (Request& request : running_) {
      EngineCoreOutput output{.num_new_tokens = 1, .events = request.events};
      if (request.stats.is_prefilling) {
        output.prefill_stats =
            PrefillStats{.num_prompt_tokens = request.stats.num_prompt_tokens,
                         .num_local_cached_tokens = kCachedTokens};
      }
      iteration_.update_from_output(output, step_end, request.stats);
      request.events.clear();
      if (--request.tokens_left == 0) {
        iteration_.update_from_finished_request(FinishReason::kLength,
                                                request.stats);
      }
    }
    std::erase_if(running_,
                  [](const Request& r) { return r.tokens_left == 0; });

    scheduler_.num_running_reqs = std::ssize(running_);
    scheduler_.num_waiting_reqs = std::ssize(waiting_);
    scheduler_.kv_cache_usage = 0.25 * static_cast<double>(running_.size());
    manager_.record(&scheduler_, &iteration_);
    scheduler_.prefix_cache_stats = {};  // a delta, like all that is counted
    // [/step]
  }

  bool idle() const { return running_.empty() && waiting_.empty(); }

 private:
  static constexpr std::size_t kSlots = 3;
  static constexpr std::int64_t kCachedTokens = 16;  // of every prompt

  StatLoggerManager& manager_;
  const Clock& clock_;
  std::deque<Request> waiting_;
  std::vector<Request> running_;
  std::vector<Ended> ended_;
  IterationStats iteration_;  // kept, so that its vectors keep their storage
  SchedulerStats scheduler_;
};

// The samples that are not 0, without buckets.
void print(std::string_view page) {
  std::istringstream lines{std::string(page)};
  for (std::string line; std::getline(lines, line);) {
    const bool shown = line[0] != '#' && !line.ends_with(" 0.0") &&
                       line.find("_bucket{") == std::string::npos;
    if (shown) std::cout << line << '\n';
  }
}

}  // namespace

int main() {
  const auto clock = std::make_shared<ScriptedClock>();
  // [create]
  StatLoggerOptions options;
  options.model_name = "tiny-1b";
  options.max_model_len = 4096;
  options.clock = clock;  // left out: the machine's clocks
  auto manager = StatLoggerManager::create(std::move(options));
  if (!manager.ok()) {
    std::cerr << manager.status() << '\n';
    return 1;
  }
  // [/create]

  Engine engine(**manager, *clock);
  // [parent]
  const auto parent = std::make_shared<ParentRequest>(2);  // n = 2
  engine.add("pair-0", 100, 3, parent);
  engine.add("pair-1", 100, 5, parent);
  // [/parent]
  engine.add("single", 64, 6);
  engine.add("impatient", 2000, 100);

  for (int number = 1; !engine.idle(); ++number) {
    if (number == 2) engine.cancel("impatient");
    engine.schedule();
    if (number == 4) engine.preempt();
    clock->now += 0.02;  // the forward pass
    engine.step();
  }
  (*manager)->log();
  print(TextFormat().render(*(*manager)->registry()));
}
