#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace vllm_metrics::inline v0::shm {

// The files of a shared registry, in one folder. Numbers lie as the machine
// has them: all who read them run on it.
//
//   vllm_metrics-BOOT-PID-START-N.segment   one for each process, of its own
//   vllm_metrics.folded                     the sums of processes that ended
//   vllm_metrics.lock                       held by whoever folds
//   vllm_metrics.hold                       in a fresh folder, held by all
//
// BOOT: the first 8 digits of the boot id; START: see start_time; N: 0, or
// more when a process opens several registries. What ends in `.tmp` is being
// made. Every other file is somebody else's and is not touched.

// A segment starts with this; blocks follow, one behind the other, to
// used_bytes. They are only ever added. What tells the owner (40 to 79) lies
// there in every version.
//
//   offset 0   magic           "vllmmetr"
//   8          version         3; readers skip files of another one
//   12         state           1 open, 2 closed: its owner takes no more steps
//   16         file_bytes      allocated whole when it is made
//   24         used_bytes      to the end of the last whole block
//   32         changes         grows when a block comes or changes its state
//   40         pid             the owner
//   44         reserved        0
//   48         start_time      of the owner, clock ticks since boot, field 22
//   of
//                              /proc/PID/stat: a pid is used again
//   56         pid_namespace   where pid means the owner (inode of
//                              /proc/self/ns/pid); 0: unknown
//   64         boot_id         16 bytes
//   80         opened          when it was made, a double: seconds since 1970;
//                              0: unknown. Of the folded file: the least of
//                              what is in it
//   88         padding         to 128
struct alignas(64) SegmentHeader {
  std::array<char, 8> magic = {'v', 'l', 'l', 'm', 'm', 'e', 't', 'r'};
  std::uint32_t version = 3;
  std::atomic<std::uint32_t> state{1};
  std::uint64_t file_bytes = 0;
  std::atomic<std::uint64_t> used_bytes{128};
  std::atomic<std::uint64_t> changes{0};
  std::int32_t pid = 0;
  std::uint32_t reserved = 0;
  std::uint64_t start_time = 0;
  std::uint64_t pid_namespace = 0;
  std::array<std::uint64_t, 2> boot_id = {};
  double opened = 0.0;
  std::array<std::uint64_t, 5> padding = {};
};
static_assert(offsetof(SegmentHeader, magic) == 0);
static_assert(offsetof(SegmentHeader, version) == 8);
static_assert(offsetof(SegmentHeader, state) == 12);
static_assert(offsetof(SegmentHeader, file_bytes) == 16);
static_assert(offsetof(SegmentHeader, used_bytes) == 24);
static_assert(offsetof(SegmentHeader, changes) == 32);
static_assert(offsetof(SegmentHeader, pid) == 40);
static_assert(offsetof(SegmentHeader, reserved) == 44);
static_assert(offsetof(SegmentHeader, start_time) == 48);
static_assert(offsetof(SegmentHeader, pid_namespace) == 56);
static_assert(offsetof(SegmentHeader, boot_id) == 64);
static_assert(offsetof(SegmentHeader, opened) == 80);
static_assert(offsetof(SegmentHeader, padding) == 88);
static_assert(sizeof(SegmentHeader) == 128);

enum class State : std::uint32_t { kOpen = 1, kClosed = 2 };

// How the cells of a block lie.
enum class BlockForm : std::uint32_t {
  kBanks = 1,      // bank_format.h; each at a multiple of 64
  kWords = 2,      // cells alone, each written by itself
  kFolded = 3,     // cells, then as many doubles: what a sum lost in rounding
  kInfo = 4,       // banks, each one series with its labels
                   // (src/registry/info_words.h)
  kHistogram = 5,  // cells, then how many observations have begun and ended
};

constexpr bool is_in_banks(BlockForm form) noexcept {
  return form == BlockForm::kBanks || form == BlockForm::kInfo;
}

// Some series that came together: the header, their schema, and at the next
// multiple of 64 their cells.
//
//   offset 0           form
//   4                  state         1 open; 2 closed: written no more
//   8                  size          bytes, a multiple of 64, all included
//   16                 schema_hash   of the schema's bytes, FNV-1a of 64 bits
//   24                 schema_bytes
//   28                 bank_count    1 without banks
//   32                 cell_count    of each bank
//   40                 torn_banks    kFolded: banks that were left in a step
//   48                 name_bytes    kFolded: behind the doubles, the names of
//                                    the files that are in it, a line each
//   56                 padding       to 64
//   64                 schema        src/shm/schema_codec.h
struct alignas(64) BlockHeader {
  std::uint32_t form = 0;
  std::atomic<std::uint32_t> state{1};
  std::uint64_t size = 0;
  std::uint64_t schema_hash = 0;
  std::uint32_t schema_bytes = 0;
  std::uint32_t bank_count = 1;
  std::uint64_t cell_count = 0;
  std::uint64_t torn_banks = 0;
  std::uint64_t name_bytes = 0;
  std::uint64_t padding = 0;
};
static_assert(offsetof(BlockHeader, form) == 0);
static_assert(offsetof(BlockHeader, state) == 4);
static_assert(offsetof(BlockHeader, size) == 8);
static_assert(offsetof(BlockHeader, schema_hash) == 16);
static_assert(offsetof(BlockHeader, schema_bytes) == 24);
static_assert(offsetof(BlockHeader, bank_count) == 28);
static_assert(offsetof(BlockHeader, cell_count) == 32);
static_assert(offsetof(BlockHeader, torn_banks) == 40);
static_assert(offsetof(BlockHeader, name_bytes) == 48);
static_assert(offsetof(BlockHeader, padding) == 56);
static_assert(sizeof(BlockHeader) == 64);

inline constexpr std::size_t kLineBytes = 64;

constexpr std::size_t to_line(std::size_t bytes) noexcept {
  return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

}  // namespace vllm_metrics::inline v0::shm
