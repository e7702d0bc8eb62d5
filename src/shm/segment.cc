#include "src/shm/segment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <new>
#include <system_error>
#include <utility>

#include "src/registry/unique_fd.h"
#include "src/shm/schema_codec.h"
#include "vllm_metrics/registry/banks.h"

namespace vllm_metrics::inline v0::shm {
namespace {

constexpr std::size_t kLongestName = 96;

std::byte* bytes_of(BlockHeader* block) {
  return reinterpret_cast<std::byte*>(block);
}
std::byte* cells_of(BlockHeader* block) {
  return bytes_of(block) + to_line(sizeof *block + block->schema_bytes);
}

BlockForm form_of(SeriesStore::Form form) {
  switch (form) {
    case SeriesStore::Form::kBanks:
      return BlockForm::kBanks;
    case SeriesStore::Form::kWords:
      break;
    case SeriesStore::Form::kHistogram:
      return BlockForm::kHistogram;
    case SeriesStore::Form::kInfo:
      return BlockForm::kInfo;
  }
  return BlockForm::kWords;
}

std::size_t cell_bytes(const SeriesStore::Request& request) {
  return is_in_banks(form_of(request.form))
             ? request.banks * Banks::stride(request.cell_count)
             : to_line(request.cell_count * sizeof(std::uint64_t));
}

// Gives a new file its blocks. Returns an errno value. A signal would interrupt
// it, and a timer's do so every time.
int allocate(int file, std::size_t bytes) noexcept {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = ::posix_fallocate(file, 0, static_cast<off_t>(bytes));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

// Without a lock, which strerror() may take.
const char* text_of(int error) noexcept {
#ifdef __GLIBC__
  return ::strerrordesc_np(error);
#else
  return error == ENOSPC ? "No space left on device" : "it cannot be made";
#endif
}

// Banks of zeros where those of `block` are.
void make_banks(BlockHeader* block) {
  if (!is_in_banks(static_cast<BlockForm>(block->form))) return;
  std::byte* next = cells_of(block);
  for (std::uint32_t i = 0; i < block->bank_count; ++i) {
    Bank::create(next, block->cell_count);
    next += Banks::stride(block->cell_count);
  }
}

// Where native histograms lie in a block of banks.
std::vector<std::size_t> native_cells_of(const BlockHeader& block,
                                         const SeriesStore::Request& request) {
  std::vector<std::size_t> found;
  const std::size_t front = to_line(sizeof block + block.schema_bytes);
  for (const SchemaFamily& family : request.families) {
    for (const Series& series : family.series) {
      if (series.native_buckets == 0) continue;
      const std::size_t cell =
          series.offset + series.bounds->bucket_count() + 1;
      const std::size_t bank = cell / request.cell_count;
      found.push_back(front + bank * Banks::stride(request.cell_count) +
                      sizeof(BankHeader) +
                      cell % request.cell_count * sizeof(std::uint64_t));
    }
  }
  return found;
}

// Writes it whole if it finds room at once. Nobody reading is no signal.
void try_write(int file, std::string_view text) noexcept {
  struct pollfd room {
    file, POLLOUT, 0
  };
  if (::poll(&room, 1, 0) != 1 || (room.revents & POLLOUT) == 0) return;
  sigset_t broken;
  sigset_t before;
  sigset_t waiting;
  sigemptyset(&broken);
  sigaddset(&broken, SIGPIPE);
  ::sigpending(&waiting);
  ::pthread_sigmask(SIG_BLOCK, &broken, &before);
  if (::write(file, text.data(), text.size()) < 0 && errno == EPIPE &&
      sigismember(&waiting, SIGPIPE) == 0) {
    constexpr timespec kNow{};
    ::sigtimedwait(&broken, nullptr, &kNow);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

absl::Status system_error(std::string_view what, std::string_view path,
                          int error) {
  const std::string text = fmt::format("{} {}: {}", what, path,
                                       std::generic_category().message(error));
  if (error == EACCES || error == EPERM || error == EROFS)
    return absl::PermissionDeniedError(text);
  if (error == ENOSPC || error == EDQUOT || error == EFBIG)
    return absl::ResourceExhaustedError(text);
  if (error == ENOENT || error == ENOTDIR) return absl::NotFoundError(text);
  return absl::UnavailableError(text);
}

Segment::Segment(std::string folder, std::size_t bytes)
    : folder_(std::move(folder)), bytes_(bytes) {
  name_.reserve(kLongestName);
  path_.reserve(folder_.size() + kLongestName);
  unfinished_.reserve(folder_.size() + kLongestName);
}

absl::StatusOr<std::shared_ptr<Segment>> Segment::create(std::string folder,
                                                         std::size_t bytes) {
  std::shared_ptr<Segment> made(new Segment(std::move(folder), bytes));
  void* memory = nullptr;
  int error = made->make_file(ProcessIdentity::of_this_process(), memory);
  if (error == 0) {
    made->header_ = static_cast<SegmentHeader*>(memory);
    error = made->show_file();
  }
  if (error != 0) {
    return system_error(fmt::format("a segment of {} bytes in", bytes),
                        made->folder_, error);
  }
  made->join();
  return made;
}

Segment::~Segment() {
  if (header_ == nullptr) return;
  leave();
  header_->state.store(static_cast<std::uint32_t>(State::kClosed),
                       std::memory_order_release);
  ::munmap(header_, bytes_);
}

// Makes and maps a file, with an empty segment in it. Returns an errno value,
// and leaves no file then. A forked child calls it too: it allocates nothing.
int Segment::make_file(const ProcessIdentity& owner, void*& memory) noexcept {
  static std::atomic<unsigned> next_serial{0};
  UniqueFd file;
  while (file.value() < 0) {
    std::array<char, kLongestName> name;
    std::snprintf(name.data(), name.size(), "%s%08x-%d-%llu-%u%s",
                  kFilePrefix.data(),
                  static_cast<unsigned>(owner.boot_id[0] >> 32), owner.pid,
                  static_cast<unsigned long long>(owner.start_time),
                  next_serial.fetch_add(1, std::memory_order_relaxed),
                  kSegmentSuffix.data());
    name_ = name.data();
    path_.assign(folder_).append("/").append(name_);
    unfinished_.assign(path_).append(kUnfinishedSuffix);
    // Of this process before it called exec().
    if (::access(path_.c_str(), F_OK) == 0) continue;
    file.reset(::open(unfinished_.c_str(),
                      O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (file.value() < 0 && errno != EEXIST) return errno;
  }
  // All of it now: a disk that is full later is nobody's SIGBUS.
  int error = allocate(file.value(), bytes_);
  if (error == 0) {
    memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED,
                    file.value(), 0);
    if (memory == MAP_FAILED) error = errno;
  }
  if (error != 0) {
    ::unlink(unfinished_.c_str());
    return error;
  }
  auto* header = new (memory) SegmentHeader;
  header->file_bytes = bytes_;
  header->pid = owner.pid;
  header->start_time = owner.start_time;
  header->pid_namespace = owner.pid_namespace;
  header->boot_id = owner.boot_id;
  header->opened = std::chrono::duration<double>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  return 0;
}

// Gives the file the name that readers look for.
int Segment::show_file() noexcept {
  if (::rename(unfinished_.c_str(), path_.c_str()) == 0) return 0;
  const int error = errno;
  ::unlink(unfinished_.c_str());
  return error;
}

// From inside fork(): nothing but system calls.
void Segment::say_it_is_alone(int error) const noexcept {
  std::array<char, 512> text;
  const int size = std::snprintf(
      text.data(), text.size(),
      "vllm_metrics: what process %d counts is on no page: a segment of %zu "
      "bytes in %s: %s\n",
      ::getpid(), bytes_, folder_.c_str(), text_of(error));
  const auto most = static_cast<int>(text.size()) - 1;
  try_write(STDERR_FILENO,
            {text.data(), static_cast<std::size_t>(std::clamp(size, 0, most))});
}

// In the child, which has one thread. Without a file (no room, no folder) its
// series go on in private memory, seen by nobody.
void Segment::begin_child() noexcept {
  void* memory = nullptr;
  const int error = make_file(ProcessIdentity::of_this_process(), memory);
  const bool has_file = error == 0;
  if (!has_file) {
    say_it_is_alone(error);
    memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    new (memory) SegmentHeader;
  }
  auto* const header = static_cast<SegmentHeader*>(memory);
  std::uint64_t used = sizeof(SegmentHeader);
  for (const auto& [block, native_at] : blocks_) {
    const auto at = static_cast<std::size_t>(
        bytes_of(block) - reinterpret_cast<std::byte*>(header_));
    auto* const copy =
        reinterpret_cast<BlockHeader*>(static_cast<std::byte*>(memory) + at);
    std::memcpy(static_cast<void*>(copy), block,
                sizeof *block + block->schema_bytes);
    make_banks(copy);
    for (const std::size_t words : native_at) {
      std::memcpy(bytes_of(copy) + words, bytes_of(block) + words,
                  3 * sizeof(std::uint64_t));
    }
    used = at + block->size;
  }
  header->used_bytes.store(used, std::memory_order_release);
  ::mremap(memory, bytes_, bytes_, MREMAP_MAYMOVE | MREMAP_FIXED, header_);
  if (has_file) show_file();
}

absl::StatusOr<SeriesStore::Place> Segment::claim(
    const std::shared_ptr<Segment>& segment,
    const SeriesStore::Request& request) {
  const std::string schema = encode(request.families);
  const MutexLock lock(segment->mutex_);
  BlockHeader* block = segment->reopen(schema, request);
  const bool is_new = block == nullptr;
  if (is_new) block = segment->append(schema, request);
  if (block == nullptr) {
    return absl::ResourceExhaustedError(fmt::format(
        "segment_bytes = {}: family {} and {} more do not fit in what is left; "
        "allowed: {} bytes more",
        segment->bytes_, request.families.front().family.name,
        request.families.size() - 1,
        to_line(sizeof(BlockHeader) + schema.size()) + cell_bytes(request)));
  }
  return SeriesStore::Place{
      .memory = std::shared_ptr<void>(
          cells_of(block), [segment, block](void*) { segment->close(block); }),
      .is_new = is_new};
}

BlockHeader* Segment::reopen(std::string_view schema,
                             const SeriesStore::Request& request) {
  const std::uint64_t hash = hash_of(schema);
  for (const auto& [block, native_at] : blocks_) {
    const std::string_view of(reinterpret_cast<const char*>(block + 1),
                              block->schema_bytes);
    if (block->state.load(std::memory_order_relaxed) !=
            static_cast<std::uint32_t>(State::kClosed) ||
        block->form != static_cast<std::uint32_t>(form_of(request.form)) ||
        block->cell_count != request.cell_count || block->schema_hash != hash ||
        of != schema)
      continue;
    block->state.store(static_cast<std::uint32_t>(State::kOpen),
                       std::memory_order_release);
    note_change();
    return block;
  }
  return nullptr;
}

BlockHeader* Segment::append(std::string_view schema,
                             const SeriesStore::Request& request) {
  const std::uint64_t at = header_->used_bytes.load(std::memory_order_relaxed);
  const std::size_t size =
      to_line(sizeof(BlockHeader) + schema.size()) + cell_bytes(request);
  if (at + size > bytes_) return nullptr;
  auto* const block =
      new (reinterpret_cast<std::byte*>(header_) + at) BlockHeader;
  block->form = static_cast<std::uint32_t>(form_of(request.form));
  block->size = size;
  block->schema_hash = hash_of(schema);
  block->schema_bytes = static_cast<std::uint32_t>(schema.size());
  block->bank_count = static_cast<std::uint32_t>(request.banks);
  block->cell_count = request.cell_count;
  std::memcpy(bytes_of(block) + sizeof *block, schema.data(), schema.size());
  make_banks(block);
  blocks_.push_back({block, native_cells_of(*block, request)});
  // The block is whole before readers learn of it.
  header_->used_bytes.store(at + size, std::memory_order_release);
  note_change();
  return block;
}

void Segment::close(BlockHeader* block) noexcept {
  const MutexLock lock(mutex_);
  block->state.store(static_cast<std::uint32_t>(State::kClosed),
                     std::memory_order_release);
  note_change();
}

void Segment::note_change() noexcept {
  header_->changes.fetch_add(1, std::memory_order_release);
}

}  // namespace vllm_metrics::inline v0::shm
