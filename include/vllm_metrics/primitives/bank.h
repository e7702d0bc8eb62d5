#pragma once

#include <atomic>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <thread>

#include "vllm_metrics/primitives/bank_format.h"
#include "vllm_metrics/primitives/bucket_bounds.h"
#include "vllm_metrics/primitives/bucket_tally.h"
#include "vllm_metrics/primitives/cell.h"
#include "vllm_metrics/primitives/exemplar_format.h"
#include "vllm_metrics/primitives/native_words.h"
#include "vllm_metrics/primitives/sample_faults.h"

namespace vllm_metrics::inline v0 {

enum class BankRead {
  kConsistent,  // a state between two sections
  kTorn,        // the owner died inside a section: read as it was left
};

// All the cells of one engine, and the word that makes a step of them atomic
// for readers: a view of another's memory, laid out as bank_format.h says.
//
// Thread-safety: one Section at a time (the caller's lock); copy_to() from any
// thread and process at any time. Neither waits for a lock of the other.
// Definition: a sequence lock; its memory orders are argued below.
class Bank {
 public:
  class Section;

  static constexpr std::size_t size_bytes(std::size_t cell_count) noexcept {
    return sizeof(BankHeader) + 2 * cell_count * sizeof(Cell);
  }

  // Makes a bank of zeros in `memory`: 64-byte aligned, size_bytes() long.
  static Bank create(void* memory, std::size_t cell_count) noexcept {
    auto* header = new (memory) BankHeader;
    header->cell_count = cell_count;
    new (header + 1) Cell[2 * cell_count];
    return Bank(header);
  }
  // Looks at a bank that create() made there, in this or another process.
  static Bank attach(void* memory) noexcept {
    return Bank(static_cast<BankHeader*>(memory));
  }

  std::size_t cell_count() const noexcept { return header_->cell_count; }
  std::uint64_t sequence() const noexcept {
    return header_->sequence.load(std::memory_order_acquire);
  }

  // Copies the cells as they were between two sections.
  //
  // First it is tried optimistically: two equal even sequence words with the
  // copy between them. The cells are stored with release inside the section
  // and loaded with acquire here: whoever reads a word of a section also sees
  // that section's odd sequence word, or a later one, in the second look.
  // After kOptimisticAttempts it raises `copy_wanted`, and the writer leaves a
  // copy at the end of its step, under a sequence of its own. Who has seen one
  // younger than the call asks for no more: readers would keep each other's
  // copies from coming to rest. A live owner is never given up on, it may be
  // descheduled; `owner_alive()` is asked while a section stays open, and
  // believed if it is open still: an owner may close it and then exit.
  template <class OwnerAlive>
  BankRead copy_to(std::span<std::uint64_t> out,
                   OwnerAlive&& owner_alive) const {
    std::uint64_t open_before = 0;
    const std::uint64_t stale =
        header_->copy_sequence.load(std::memory_order_acquire);
    for (int attempt = 0;; ++attempt) {
      if (try_copy(header_->sequence, cells(), out))
        return BankRead::kConsistent;
      if (attempt < kOptimisticAttempts) continue;
      if (header_->copy_sequence.load(std::memory_order_acquire) <= stale) {
        header_->copy_wanted.store(1, std::memory_order_relaxed);
      } else if (try_copy(header_->copy_sequence, copy(), out)) {
        return BankRead::kConsistent;
      }
      const std::uint64_t open = sequence();
      if ((open & 1) != 0 && open == open_before && !owner_alive() &&
          sequence() == open) {
        for (std::size_t i = 0; i < out.size(); ++i) out[i] = cells()[i].load();
        return BankRead::kTorn;
      }
      open_before = open;
      std::this_thread::yield();
    }
  }
  // For a bank of this process, whose owner cannot be dead.
  void copy_to(std::span<std::uint64_t> to) const {
    copy_to(to, [] { return true; });
  }

 private:
  explicit Bank(BankHeader* header) noexcept : header_(header) {}

  Cell* cells() const noexcept { return reinterpret_cast<Cell*>(header_ + 1); }
  Cell* copy() const noexcept { return cells() + header_->cell_count; }

  static bool try_copy(const std::atomic<std::uint64_t>& sequence,
                       const Cell* from, std::span<std::uint64_t> out) {
    const std::uint64_t before = sequence.load(std::memory_order_acquire);
    if ((before & 1) != 0) return false;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = from[i].load();
    return sequence.load(std::memory_order_relaxed) == before;
  }

  // The odd word that opens a section after `sequence`; also after an odd one,
  // which an owner left that died inside a section of its own.
  static constexpr std::uint64_t opened(std::uint64_t sequence) noexcept {
    return (sequence + 1) | 1;
  }

  static constexpr int kOptimisticAttempts = 8;

  BankHeader* header_;
};

// The writer's side of a bank: everything written through it becomes visible
// to readers at once, when it is destroyed.
//
// Thread-safety: none; one open section a bank, and the caller's lock orders
// one after the other. Takes no lock, makes no system call, allocates nothing.
// Errors: none returned. What cannot be taken is counted in faults().
// The odd store may be relaxed: the cells' own stores release it (see copy_to).
// The even store releases the cells.
class Bank::Section {
 public:
  // `now`: wall clock, seconds since 1970; stamps the gauges that are set.
  Section(Bank bank, double now) noexcept
      : header_(bank.header_),
        cells_(bank.cells()),
        now_(now),
        open_(opened(header_->sequence.load(std::memory_order_relaxed))) {
    header_->sequence.store(open_, std::memory_order_relaxed);
  }
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;
  ~Section() {
    const auto wanted = header_->copy_wanted.load(std::memory_order_relaxed);
    if (wanted != 0) [[unlikely]]
      leave_copy();
    header_->sequence.store(open_ + 1, std::memory_order_release);
  }

  // Counter of events or tokens. Negative, also where an unsigned type took
  // the sign: dropped and counted.
  template <std::integral Count>
  void inc(std::uint32_t cell, Count n) noexcept {
    if (const auto word = static_cast<std::int64_t>(n); word >= 0) [[likely]] {
      cells_[cell].add(static_cast<std::uint64_t>(word));
    } else {
      ++faults_.negative_increments;
    }
  }

  // Counter of seconds or estimates. The same, and what is not finite.
  void inc(std::uint32_t cell, double v) noexcept {
    if (internal::is_plain(v)) [[likely]] {
      cells_[cell].add(v);
    } else {
      faults_.not_finite += std::isfinite(v) ? 0U : 1U;
      faults_.negative_increments += std::isfinite(v) && v < 0.0 ? 1U : 0U;
    }
  }

  void set(GaugeCells gauge, double v) noexcept {
    cells_[gauge.value].set(v);
    cells_[gauge.value + 1].set(now_);
  }
  void store(std::uint32_t i, std::uint64_t w) noexcept { cells_[i].store(w); }

  void observe(const HistogramCells& at, double v) noexcept {
    if (std::bit_cast<std::uint64_t>(v) < at.short_way_end) [[likely]] {
      observe_plain(at, v);
    } else {
      observe_carefully(at, v);
    }
  }

  void observe(const HistogramCells& at,
               std::span<const double> values) noexcept {
    if (values.empty()) return;
    Cell* const buckets = cells_ + at.first;
    Cell& sum = buckets[at.bounds->bucket_count()];
    const Tally counted = tally<Negatives::kTakenAsZero>(
        *at.bounds, values, sum.own_double(),
        [buckets](std::size_t i, std::uint64_t n) { buckets[i].add(n); });
    sum.set(counted.sum);
    faults_.not_finite += counted.not_finite;
    faults_.negative_observations += counted.negative;
    if (at.native_buckets != 0) [[unlikely]]
      native(at).add_all(values, counted);
  }

  // Of a histogram that has native buckets; reset() them first of all.
  NativeWords<Cell> native(const HistogramCells& at) noexcept {
    return {cells_ + at.first + at.bounds->bucket_count() + 1,
            at.native_buckets};
  }

  // Stamped, in place of its bucket's last one. `first`: cell of all of them.
  void keep(std::uint32_t first, const BucketBounds& of, Exemplar it) noexcept {
    it.timestamp = now_;
    Cell* cell = cells_ + first + kExemplarWords * of.bucket_of(it.value);
    for (const std::uint64_t word : words_of(it)) (cell++)->store(word);
  }

  const SampleFaults& faults() const noexcept { return faults_; }

 private:
  void observe_plain(const HistogramCells& at, double v) noexcept {
    Cell* const buckets = cells_ + at.first;
    buckets[at.bounds->look_up_one(v)].add(std::uint64_t{1});
    buckets[at.bounds->bucket_count()].add(v);
  }
  // Apart, so that the short way needs no stack.
  [[gnu::noinline]] void observe_carefully(const HistogramCells& at,
                                           double v) noexcept {
    if (!at.bounds->can_look_up(v)) return observe(at, std::span(&v, 1));
    observe_plain(at, v);
    if (at.native_buckets != 0) native(at).add(v, 1);
  }

  // Still inside the section, so the cells are at rest.
  void leave_copy() noexcept {
    Cell* const copy = cells_ + header_->cell_count;
    const std::uint64_t open =
        opened(header_->copy_sequence.load(std::memory_order_relaxed));
    header_->copy_wanted.store(0, std::memory_order_relaxed);
    header_->copy_sequence.store(open, std::memory_order_relaxed);
    for (std::size_t i = 0; i < header_->cell_count; ++i)
      copy[i].store(cells_[i].own());
    header_->copy_sequence.store(open + 1, std::memory_order_release);
  }

  BankHeader* header_;
  Cell* cells_;
  double now_;
  std::uint64_t open_;
  SampleFaults faults_;
};

}  // namespace vllm_metrics::inline v0
