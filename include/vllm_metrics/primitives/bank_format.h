#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "vllm_metrics/primitives/bucket_bounds.h"
#include "vllm_metrics/primitives/cell.h"

namespace vllm_metrics::inline v0 {

// The first cache line of a bank. Only atomics and plain numbers: a bank may
// lie in shared memory, at another address in every process.
//
//   offset 0             sequence          odd while a section is open
//   8                    copy_sequence     the same for the copy
//   16                   copy_wanted       set by a starving reader
//   20                   reserved          0
//   24                   cell_count
//   32                   padding           to 64
//   64                   cells             8 * cell_count
//   64 + 8 * cell_count  copy of the cells, written when a reader starves
struct alignas(64) BankHeader {
  std::atomic<std::uint64_t> sequence{0};
  std::atomic<std::uint64_t> copy_sequence{0};
  std::atomic<std::uint32_t> copy_wanted{0};
  std::uint32_t reserved = 0;
  std::uint64_t cell_count = 0;
};
static_assert(offsetof(BankHeader, sequence) == 0);
static_assert(offsetof(BankHeader, copy_sequence) == 8);
static_assert(offsetof(BankHeader, copy_wanted) == 16);
static_assert(offsetof(BankHeader, reserved) == 20);
static_assert(offsetof(BankHeader, cell_count) == 24);
static_assert(sizeof(BankHeader) == 64);

// Where a histogram lies in a bank: a cell for each bucket, then the sum, then
// the words of its native buckets (native_words.h) if it has such, then those
// of its exemplars (exemplar_format.h), which only who keeps them asks for.
struct HistogramCells {
  constexpr HistogramCells() noexcept = default;
  HistogramCells(std::uint32_t first_cell, const BucketBounds* of,
                 std::uint32_t native = 0) noexcept
      : first(first_cell),
        native_buckets(native),
        bounds(of),
        short_way_end(of != nullptr && native == 0 ? of->look_up_end() : 0) {}

  std::uint32_t first = 0;
  std::uint32_t native_buckets = 0;  // 0: none
  const BucketBounds* bounds = nullptr;
  // Values whose bits are below it take Bank::Section's short way. With native
  // buckets none does, so that those cost nothing where there are none.
  std::uint64_t short_way_end = 0;
};

// Where a gauge lies in a bank: its value, then the time of its last write.
struct GaugeCells {
  std::uint32_t value = 0;
};

}  // namespace vllm_metrics::inline v0
