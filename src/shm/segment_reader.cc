#include "src/shm/segment_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <string_view>
#include <system_error>

#include "src/registry/info_words.h"
#include "src/shm/segment.h"
#include "vllm_metrics/registry/banks.h"
#include "vllm_metrics/registry/labels.h"

namespace vllm_metrics::inline v0::shm {
namespace {

constexpr int kOptimisticAttempts = 8;
// How long a bank of a live owner is waited for: one that is stopped inside a
// step must not stop the scrape.
constexpr std::chrono::milliseconds kPatience{100};

// The kernel has copied what was read before this before what is read after.
// On x86-64 it does so anyway. ThreadSanitizer knows neither fences nor what
// another process stores.
void order_reads() {
#ifndef __SANITIZE_THREAD__
  std::atomic_thread_fence(std::memory_order_acquire);
#endif
}

}  // namespace

absl::Status read_whole(int file, std::uint64_t at, void* out,
                        std::size_t bytes) {
  auto* next = static_cast<char*>(out);
  while (bytes != 0) {
    const ssize_t got = ::pread(file, next, bytes, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return absl::DataLossError(std::generic_category().message(errno));
    if (got == 0) return absl::DataLossError("it is cut short");
    next += got;
    at += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::size_t>(got);
  }
  return absl::OkStatus();
}

double opened_of(const SegmentHeader& header) {
  return std::isfinite(header.opened) ? std::max(header.opened, 0.0) : 0.0;
}

SegmentReader::SegmentReader(int folder, const std::string& name,
                             const ProcessIdentity& self)
    : self_(self) {
  constexpr int kHow = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  file_.reset(::openat(folder, name.c_str(), O_RDWR | kHow));
  if (file_.value() < 0)
    file_.reset(::openat(folder, name.c_str(), O_RDONLY | kHow));
  if (file_.value() < 0) open_error_ = errno;
}

absl::Status SegmentReader::read_at(std::uint64_t at, void* out,
                                    std::size_t bytes) const {
  return read_whole(file_.value(), at, out, bytes);
}

absl::StatusOr<std::uint64_t> SegmentReader::word_at(std::uint64_t at) const {
  std::uint64_t word = 0;
  if (auto status = read_at(at, &word, sizeof word); !status.ok())
    return status;
  return word;
}

absl::Status SegmentReader::read(SchemaDecoder& schemas) {
  if (has_ended_) return absl::OkStatus();
  if (open_error_ != 0)
    return absl::DataLossError(std::generic_category().message(open_error_));
  if (auto status = read_header(); !status.ok()) return status;
  const bool is_open =
      header_.state.load() == static_cast<std::uint32_t>(State::kOpen);
  // Asked before reading: what is read of one that has ended is all of it.
  is_alive_ = is_open && owner_->is_alive();
  const bool is_last = !is_alive_;
  if (header_.changes.load() != changes_) {
    if (auto status = read_blocks(schemas); !status.ok()) return status;
    changes_ = header_.changes.load();
  }
  for (Block& block : blocks_) {
    if (block.form == BlockForm::kWords) {
      if (auto status = read_words(block); !status.ok()) return status;
    }
    if (block.form == BlockForm::kHistogram) {
      if (auto status = read_histogram(block); !status.ok()) return status;
    }
    for (std::size_t i = 0; i < block.is_torn.size(); ++i) {
      if (auto status = read_bank(block, i); !status.ok()) return status;
    }
    if (block.form == BlockForm::kInfo) read_labels(block);
  }
  if (is_last) {
    has_ended_ = true;
    file_.reset();
    owner_.reset();
  }
  return absl::OkStatus();
}

absl::Status SegmentReader::read_header() {
  if (auto status = read_at(0, static_cast<void*>(&header_), sizeof header_);
      !status.ok())
    return status;
  if (header_.magic != SegmentHeader().magic)
    return absl::DataLossError("it is not a segment");
  if (owner_ == nullptr) {
    owner_ = std::make_unique<ProcessWatch>(
        ProcessIdentity{.pid = header_.pid,
                        .start_time = header_.start_time,
                        .pid_namespace = header_.pid_namespace,
                        .boot_id = header_.boot_id},
        self_);
  }
  if (header_.version != SegmentHeader().version) {
    return absl::UnimplementedError(fmt::format("format version {} is not {}",
                                                header_.version,
                                                SegmentHeader().version));
  }
  if (header_.used_bytes.load() > header_.file_bytes ||
      header_.file_bytes > kMostSegmentBytes)
    return absl::DataLossError("its header is damaged");
  return absl::OkStatus();
}

absl::Status SegmentReader::read_blocks(SchemaDecoder& schemas) {
  const std::uint64_t used = header_.used_bytes.load();
  // What a header says is no reason to allocate it.
  struct stat file {};
  if (::fstat(file_.value(), &file) != 0 ||
      static_cast<std::uint64_t>(file.st_size) < used)
    return absl::DataLossError("it is cut short");
  std::uint64_t at = sizeof header_;
  for (std::size_t i = 0; at < used; ++i) {
    if (i == blocks_.size()) {
      Block block;
      if (auto status = read_block(at, schemas, block); !status.ok())
        return status;
      blocks_.push_back(std::move(block));
    }
    BlockHeader header;
    if (auto status = read_at(at, static_cast<void*>(&header), sizeof header);
        !status.ok())
      return status;
    blocks_[i].is_closed =
        header.state.load() == static_cast<std::uint32_t>(State::kClosed);
    if (header.size == 0) return absl::DataLossError("a block is damaged");
    at += header.size;
  }
  return absl::OkStatus();
}

absl::Status SegmentReader::read_block(std::uint64_t at, SchemaDecoder& schemas,
                                       Block& out) {
  BlockHeader header;
  if (auto status = read_at(at, static_cast<void*>(&header), sizeof header);
      !status.ok())
    return status;
  const auto damaged = absl::DataLossError("a block is damaged");
  const std::uint64_t room = header_.used_bytes.load() - at;
  const auto form = static_cast<BlockForm>(header.form);
  const bool in_banks = is_in_banks(form);
  if ((!in_banks && form != BlockForm::kWords &&
       form != BlockForm::kHistogram) ||
      (form == BlockForm::kHistogram && header.cell_count < 4) ||
      header.size > room || header.size % kLineBytes != 0 ||
      header.cell_count > header.size / sizeof(std::uint64_t) ||
      header.bank_count == 0 || header.bank_count > header.size / kLineBytes ||
      (!in_banks && header.bank_count != 1))
    return damaged;
  const std::uint64_t front = to_line(sizeof header + header.schema_bytes);
  const std::uint64_t cells =
      in_banks ? header.bank_count * Banks::stride(header.cell_count)
               : header.cell_count * sizeof(std::uint64_t);
  if (front + cells > header.size) return damaged;

  std::string schema(header.schema_bytes, '\0');
  if (auto status = read_at(at + sizeof header, schema.data(), schema.size());
      !status.ok())
    return status;
  const std::size_t cell_count = header.bank_count * header.cell_count;
  if (hash_of(schema) != header.schema_hash) return damaged;
  out.schema = schemas.decode(schema, cell_count);
  if (out.schema == nullptr) return damaged;
  out.at = at;
  if (form == BlockForm::kInfo) {
    const auto& families = out.schema->families;
    if (families.size() != 1 || !families[0].family.info ||
        families[0].family.kind != MetricKind::kGauge ||
        header.cell_count < InfoWords::kCellCount)
      return damaged;
    out.family = families[0].family;
    out.texts.resize(header.bank_count);
  }
  out.form = form;
  out.bank_count = header.bank_count;
  out.cell_count = header.cell_count;
  out.cells_at = at + front;
  out.cells.assign(cell_count, 0);
  if (in_banks) {
    out.stuck.assign(header.bank_count, 0);
    out.is_torn.assign(header.bank_count, 0);
  }
  return absl::OkStatus();
}

// Makes the schema anew when labels have changed.
void SegmentReader::read_labels(Block& block) {
  const auto words_of = [&block](std::size_t bank) {
    return std::span<const std::uint64_t>(block.cells)
        .subspan(bank * block.cell_count, block.cell_count);
  };
  bool has_changed = false;
  for (std::size_t i = 0; i < block.bank_count; ++i) {
    const auto words = words_of(i);
    std::string text(InfoWords::text(words));
    if (InfoWords::is_shown(words)) text += '!';
    if (text == block.texts[i]) continue;
    block.texts[i] = std::move(text);
    has_changed = true;
  }
  if (!has_changed) return;
  auto made = std::make_shared<BlockSchema>();
  made->cell_count = block.cells.size();
  SchemaFamily shown{block.family, {}};
  SchemaFamily past{block.family, {}};
  for (std::size_t i = 0; i < block.bank_count; ++i) {
    const auto words = words_of(i);
    auto labels = InfoWords::labels(InfoWords::text(words));
    if (!labels.has_value() || labels->empty() ||
        !check_labels(block.family.name, *labels, "").ok())
      continue;
    auto& list = InfoWords::is_shown(words) ? shown : past;
    list.series.push_back(
        {.labels = normalized(*std::move(labels)),
         .offset = static_cast<std::uint32_t>(i * block.cell_count)});
  }
  made->families.push_back(std::move(shown));
  made->past.push_back(std::move(past));
  block.schema = std::move(made);
}

// Single words, each written by whoever likes. That a word is not cut in two
// by the kernel's copying is only how processors do it; it is believed when
// two looks agree.
absl::Status SegmentReader::read_words(Block& block) {
  const std::size_t bytes = block.cells.size() * sizeof(std::uint64_t);
  if (auto status = read_at(block.cells_at, block.cells.data(), bytes);
      !status.ok())
    return status;
  second_look_.resize(block.cells.size());
  for (int attempt = 0; attempt < kOptimisticAttempts; ++attempt) {
    order_reads();
    if (auto status = read_at(block.cells_at, second_look_.data(), bytes);
        !status.ok())
      return status;
    if (second_look_ == block.cells) break;
    block.cells.swap(second_look_);
  }
  return absl::OkStatus();
}

// As Histogram::read_stored(): as many have begun afterwards as had ended
// before, so nobody was inside. One that died inside leaves its bucket ahead of
// the sum for good.
absl::Status SegmentReader::read_histogram(Block& block) {
  constexpr int kMostAttempts = 64;
  const std::uint64_t ended_at =
      block.cells_at + (block.cell_count - 1) * sizeof(std::uint64_t);
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    const auto ended = word_at(ended_at);
    if (!ended.ok()) return ended.status();
    order_reads();
    if (auto status = read_words(block); !status.ok()) return status;
    order_reads();
    const auto begun = word_at(ended_at - sizeof(std::uint64_t));
    if (!begun.ok()) return begun.status();
    if (*begun == *ended || !is_alive_) break;
  }
  return absl::OkStatus();
}

// True: `out` is what lay between two equal even looks at the sequence word,
// so nobody wrote meanwhile. See docs/design.md.
absl::StatusOr<bool> SegmentReader::try_read(
    std::uint64_t sequence_at, std::uint64_t cells_at,
    std::span<std::uint64_t> out) const {
  const auto before = word_at(sequence_at);
  if (!before.ok()) return before.status();
  if ((*before & 1) != 0) return false;
  order_reads();
  if (auto status = read_at(cells_at, out.data(), out.size_bytes());
      !status.ok())
    return status;
  order_reads();
  const auto after = word_at(sequence_at);
  if (!after.ok()) return after.status();
  return *after == *before;
}

// The protocol of Bank::copy_to(), through a file.
absl::Status SegmentReader::read_bank(Block& block, std::size_t bank) {
  const std::uint64_t at =
      block.cells_at + bank * Banks::stride(block.cell_count);
  const std::uint64_t cells_at = at + sizeof(BankHeader);
  const std::uint64_t copy_at =
      cells_at + block.cell_count * sizeof(std::uint64_t);
  const std::uint64_t copy_sequence_at =
      at + offsetof(BankHeader, copy_sequence);
  const auto cells =
      std::span(block.cells).subspan(bank * block.cell_count, block.cell_count);
  if (!is_alive_) {
    const auto sequence = word_at(at);
    if (!sequence.ok()) return sequence.status();
    block.is_torn[bank] = static_cast<char>(*sequence & 1);
    return read_at(cells_at, cells.data(), cells.size_bytes());
  }

  // A reading that fails must not spoil the last good one.
  second_look_.resize(block.cell_count);
  const auto take = [&] { std::ranges::copy(second_look_, cells.begin()); };
  const auto stale = word_at(copy_sequence_at);
  if (!stale.ok()) return stale.status();
  const auto until = std::chrono::steady_clock::now() + kPatience;
  std::uint64_t open_before = 0;
  for (int attempt = 0;; ++attempt) {
    const auto done = try_read(at, cells_at, second_look_);
    if (!done.ok()) return done.status();
    if (*done) return take(), absl::OkStatus();
    if (attempt < kOptimisticAttempts) continue;
    const auto copied = word_at(copy_sequence_at);
    if (!copied.ok()) return copied.status();
    if (*copied <= *stale) {
      const std::uint32_t wanted = 1;
      if (::pwrite(file_.value(), &wanted, sizeof wanted,
                   static_cast<off_t>(at + offsetof(BankHeader, copy_wanted))) <
          0) {
        // Opened for reading only: then it is tried until patience ends.
      }
    } else {
      const auto from_copy = try_read(copy_sequence_at, copy_at, second_look_);
      if (!from_copy.ok()) return from_copy.status();
      if (*from_copy) return take(), absl::OkStatus();
    }
    const auto open = word_at(at);
    if (!open.ok()) return open.status();
    if ((*open & 1) != 0 && *open == open_before) {
      if (!owner_->is_alive()) {
        is_alive_ = false;
        return read_bank(block, bank);
      }
      if (*open == block.stuck[bank]) return absl::OkStatus();
    }
    if (std::chrono::steady_clock::now() > until) {
      block.stuck[bank] = *open;
      return absl::OkStatus();
    }
    open_before = *open;
    ::sched_yield();
  }
}

void SegmentReader::add_to(std::vector<Source>& out) const {
  for (const Block& block : blocks_) {
    out.push_back({.schema = block.schema,
                   .standing = is_alive_ && !block.is_closed ? Standing::kLive
                                                             : Standing::kEnded,
                   .pid = header_.pid,
                   .cells = block.cells});
  }
}

std::size_t SegmentReader::torn_banks() const {
  std::size_t torn = 0;
  for (const Block& block : blocks_) {
    for (const char is_torn : block.is_torn) torn += is_torn != 0 ? 1 : 0;
  }
  return torn;
}

}  // namespace vllm_metrics::inline v0::shm
