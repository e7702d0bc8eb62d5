// What the memory model allows a bank's reader to see, all of it: tsan proves
// no order, and hardware shows only what it happens to do.
//
// The bank's own source is compiled a second time, in a namespace of its own,
// with an atomic that remembers every store. The writer runs first; then every
// load of the reader may return any store that coherence and the acquired views
// allow, and the test walks through all of these choices. A store that the
// reader never looks at stands for one that has not happened yet, so this
// covers every interleaving, too.

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <catch2/catch.hpp>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/primitives/bank_memory.h"

namespace vllm_metrics {
namespace {

constexpr std::size_t kCells = 2;

// Places in the memory of a bank of two cells, in words of eight bytes.
enum Place : std::size_t {
  kSequence = 0,
  kCopySequence = 1,
  kCopyWanted = 2,
  kFirstCell = 8,
  kPlaces = 12,  // two cells, two cells of the copy
};

// How far a thread has seen each place's stores: never further back again.
using View = std::array<std::size_t, kPlaces>;

struct Store {
  std::uint64_t value = 0;
  View view{};  // what an acquiring load of it has then seen
};

// Which order of the bank is taken away, to show that the test would notice.
enum class Weakened {
  kNothing,
  kCellStores,
  kCellLoads,
  kSequenceStores,
  kSequenceLoads,
};

// All ways to answer the loads of one run, one after the other.
class Choices {
 public:
  std::size_t pick(std::size_t n) {
    if (depth_ == picked_.size()) picked_.push_back({0, n});
    return picked_[depth_++].first;
  }
  // False when there is no other way left.
  bool next() {
    depth_ = 0;
    while (!picked_.empty()) {
      if (++picked_.back().first < picked_.back().second) return true;
      picked_.pop_back();
    }
    return false;
  }

 private:
  std::vector<std::pair<std::size_t, std::size_t>> picked_;
  std::size_t depth_ = 0;
};

struct Machine {
  const std::byte* memory = nullptr;
  std::array<std::vector<Store>, kPlaces> stores;
  View seen{};  // by the thread that runs
  bool reading = false;
  bool starved = false;        // the sequence word is odd at every look
  std::size_t free_loads = 0;  // that may still be answered with old stores
  Weakened weakened = Weakened::kNothing;
  Choices choices;

  std::size_t place_of(const void* word) const {
    return static_cast<std::size_t>(static_cast<const std::byte*>(word) -
                                    memory) /
           8;
  }

  bool weak(std::size_t place, Weakened cells, Weakened sequence) const {
    const auto of_this_place = place >= kFirstCell ? cells : sequence;
    return place != kCopyWanted && weakened == of_this_place;
  }

  void store(std::size_t place, std::uint64_t value, std::memory_order order) {
    if (reading) return;  // only `copy_wanted`, which no writer is left to see
    seen[place] = stores[place].size();
    Store made{value};
    if (order == std::memory_order_release &&
        !weak(place, Weakened::kCellStores, Weakened::kSequenceStores)) {
      made.view = seen;
    }
    made.view[place] = seen[place];
    stores[place].push_back(made);
  }

  std::uint64_t load(std::size_t place, std::memory_order order) {
    const std::size_t newest = stores[place].size() - 1;
    std::size_t at = newest;
    if (reading && free_loads > 0) {
      if (starved && place == kSequence) {
        at = seen[place] | 1;  // stores alternate: even, odd, even, ...
        at = std::min(at, newest);
      } else {
        at = seen[place] + choices.pick(newest - seen[place] + 1);
        --free_loads;
      }
    }
    seen[place] = at;
    const Store& found = stores[place][at];
    if (order == std::memory_order_acquire &&
        !weak(place, Weakened::kCellLoads, Weakened::kSequenceLoads)) {
      for (std::size_t p = 0; p < kPlaces; ++p) {
        seen[p] = std::max(seen[p], found.view[p]);
      }
    }
    return found.value;
  }
};

Machine* machine = nullptr;

}  // namespace

// std::atomic as far as a bank needs it, its orders taken at their word.
template <class Value>
class ModelledAtomic {
 public:
  static constexpr bool is_always_lock_free = true;

  constexpr ModelledAtomic() noexcept = default;
  constexpr ModelledAtomic(Value value) noexcept : initial_(value) {}

  void store(Value value, std::memory_order order) noexcept {
    machine->store(machine->place_of(this), value, order);
  }
  Value load(std::memory_order order) const noexcept {
    return static_cast<Value>(machine->load(machine->place_of(this), order));
  }

 private:
  Value initial_ = 0;
};

}  // namespace vllm_metrics

namespace std {
template <class Value>
using modelled_atomic = ::vllm_metrics::ModelledAtomic<Value>;
}  // namespace std

#define atomic modelled_atomic
#define vllm_metrics vllm_metrics_modelled
#include "vllm_metrics/primitives/bank.h"
#undef vllm_metrics
#undef atomic

namespace vllm_metrics {
namespace {

using vllm_metrics_modelled::Bank;
using vllm_metrics_modelled::BankRead;

// A bank after `sections` sections: each adds 1 to the first cell and 10 to the
// second, and leaves a copy.
class Scene {
 public:
  Scene(std::uint64_t sections, Weakened weakened)
      : memory_(Bank::size_bytes(kCells)) {
    machine = &machine_;
    machine_.memory = static_cast<const std::byte*>(memory_.data());
    machine_.weakened = weakened;
    for (auto& stores : machine_.stores) stores.push_back({});
    bank_.emplace(Bank::create(memory_.data(), kCells));
    for (std::uint64_t k = 0; k < sections; ++k) {
      machine_.store(kCopyWanted, 1, std::memory_order_relaxed);
      Bank::Section section(*bank_, 0.0);
      section.inc(0, 1);
      section.inc(1, 10);
    }
    machine_.reading = true;
  }
  ~Scene() { machine = nullptr; }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  // Begins a run of a reader that has seen nothing yet.
  void start_reader() { machine_.seen = {}; }

  // One call of copy_to(); `free_loads` of its loads may see old stores.
  std::array<std::uint64_t, kCells> read(std::size_t free_loads, bool starved) {
    machine_.free_loads = free_loads;
    machine_.starved = starved;
    std::array<std::uint64_t, kCells> words{};
    REQUIRE(bank_->copy_to(words, [] { return true; }) ==
            BankRead::kConsistent);
    return words;
  }
  bool next_run() { return machine_.choices.next(); }

 private:
  BankMemory memory_;
  Machine machine_;
  std::optional<Bank> bank_;
};

struct Outcome {
  std::set<std::uint64_t> states;  // that a reader returned
  std::size_t mixed = 0;           // runs with words of different states
  std::size_t older = 0;           // runs whose second read went back in time
  std::size_t runs = 0;
};

// Enough loads to decide one optimistic attempt, and one copy twice.
constexpr std::size_t kOneAttempt = 2 + 2 + kCells;
constexpr std::size_t kOneCopy = kOneAttempt + 1;

Outcome one_read(Weakened weakened, std::size_t free_loads, bool starved) {
  Scene scene(3, weakened);
  Outcome outcome;
  do {
    scene.start_reader();
    const auto words = scene.read(free_loads, starved);
    outcome.states.insert(words[0]);
    outcome.mixed += words[1] == 10 * words[0] ? 0U : 1U;
    ++outcome.runs;
  } while (scene.next_run());
  return outcome;
}

TEST_CASE(
    "Bank: whatever the memory model lets a reader see, it returns a "
    "state between two sections",
    "[primitives]") {
  const bool starved = GENERATE(false, true);
  const Outcome outcome = one_read(
      Weakened::kNothing, starved ? kOneCopy : 2 * kOneAttempt, starved);
  CAPTURE(starved, outcome.runs);
  CHECK(outcome.mixed == 0);
  CHECK(outcome.states.count(3) == 1);
  CHECK(outcome.states.size() >= 3);
  CHECK(outcome.runs > 100);
}

TEST_CASE(
    "Bank: a second read is never older than the first, by whichever "
    "way each came",
    "[primitives]") {
  const bool first_starved = GENERATE(false, true);
  const bool second_starved = GENERATE(false, true);
  Scene scene(2, Weakened::kNothing);
  Outcome outcome;
  do {
    scene.start_reader();
    const auto first = scene.read(kOneCopy, first_starved);
    const auto second = scene.read(kOneCopy, second_starved);
    outcome.mixed += second[1] == 10 * second[0] ? 0U : 1U;
    outcome.older += second[0] < first[0] ? 1U : 0U;
    ++outcome.runs;
  } while (scene.next_run());
  CAPTURE(first_starved, second_starved, outcome.runs);
  CHECK(outcome.mixed == 0);
  CHECK(outcome.older == 0);
}

TEST_CASE(
    "Bank: without any one of its memory orders a reader could see half "
    "a step",
    "[primitives]") {
  const Weakened weakened =
      GENERATE(Weakened::kCellStores, Weakened::kCellLoads,
               Weakened::kSequenceStores, Weakened::kSequenceLoads);
  const bool starved = GENERATE(false, true);
  CAPTURE(static_cast<int>(weakened), starved);
  CHECK(one_read(weakened, kOneCopy, starved).mixed > 0);
}

}  // namespace
}  // namespace vllm_metrics
