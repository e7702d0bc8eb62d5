#pragma once

#include <atomic>
#include <bit>
#include <cstdint>

namespace vllm_metrics::inline v0 {

// One 64-bit word of metric data that one thread writes and any thread reads.
//
// A cell holds an unsigned integer (events, tokens, bucket counts) or a double
// (gauges, sums, seconds); which one is the schema's business, not the cell's.
//
// Thread-safety: one writer at a time (a bank's section), any number of
// readers. Adding is a load and a store, not a read-modify-write: that is what
// makes a step cheap, and why two writers would lose counts.
// Memory order: stores release and loads acquire, because the sequence word of
// the bank (bank.h) argues with them. On x86-64 both are plain moves.
class Cell {
 public:
  constexpr Cell() noexcept = default;
  Cell(const Cell&) = delete;
  Cell& operator=(const Cell&) = delete;

  void add(std::uint64_t n) noexcept { store(own() + n); }
  void add(double v) noexcept { set(std::bit_cast<double>(own()) + v); }
  void set(double v) noexcept { store(std::bit_cast<std::uint64_t>(v)); }
  void store(std::uint64_t word) noexcept {
    word_.store(word, std::memory_order_release);
  }

  // For readers: the raw word.
  std::uint64_t load() const noexcept {
    return word_.load(std::memory_order_acquire);
  }

  // For the writer: its own last store, which needs no ordering to be seen.
  std::uint64_t own() const noexcept {
    return word_.load(std::memory_order_relaxed);
  }
  double own_double() const noexcept { return std::bit_cast<double>(own()); }

 private:
  std::atomic<std::uint64_t> word_{0};
};

static_assert(sizeof(Cell) == 8, "a cell is one word, also in shared memory");
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace vllm_metrics::inline v0
