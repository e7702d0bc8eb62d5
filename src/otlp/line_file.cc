#include "src/otlp/line_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "src/registry/unique_fd.h"

namespace vllm_metrics::inline v0::otlp {
namespace {

double monotonic() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Where files cannot be locked there is one writer.
class FileLock {
 public:
  explicit FileLock(int fd)
      : fd_(fd),
        is_of_another_(flock(fd, LOCK_EX | LOCK_NB) != 0 &&
                       errno == EWOULDBLOCK) {}
  // Not left to close(): a child of a fork in between has the file open too.
  ~FileLock() { flock(fd_, LOCK_UN); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  bool is_of_another() const { return is_of_another_; }

 private:
  const int fd_;
  const bool is_of_another_;
};

// As the process's folder is now, whatever it is at an export.
std::string absolute(std::string path) {
  std::error_code error;
  const auto whole = std::filesystem::absolute(path, error);
  return error ? path : whole.string();
}

bool are_the_same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool begins_alike(std::string_view a, std::string_view b) {
  const std::size_t size = std::min(a.size(), b.size());
  return a.substr(0, size) == b.substr(0, size);
}

// Up to `size` bytes at `offset`; fewer at the end of the file.
std::string read_at(int fd, off_t offset, std::size_t size) {
  std::string bytes(size, '\0');
  const ssize_t count = pread(fd, bytes.data(), size, offset);
  bytes.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return bytes;
}

// Where the line begins that the end of the file is in.
off_t begin_of_last_line(int fd, off_t size) {
  constexpr off_t kChunk = 64 * 1024;
  while (size > 0) {
    const off_t from = std::max<off_t>(size - kChunk, 0);
    const std::string chunk =
        read_at(fd, from, static_cast<std::size_t>(size - from));
    if (const auto newline = chunk.rfind('\n'); newline != chunk.npos)
      return from + static_cast<off_t>(newline) + 1;
    size = from;
  }
  return 0;
}

}  // namespace

LineFile::LineFile(std::string path, std::string_view head,
                   std::uint64_t max_bytes)
    : path_(absolute(std::move(path))), head_(head), max_bytes_(max_bytes) {}

absl::Status LineFile::failed(std::string_view what, int error) const {
  return absl::InternalError(fmt::format(
      "{} {}: {}", what, path_, std::generic_category().message(error)));
}

absl::Status LineFile::append(std::string_view line, double seconds) {
  constexpr int kMostMoves = 10;
  for (int i = 0; i < kMostMoves; ++i) {
    const auto placed = append_once(line, seconds);
    if (!placed.ok()) return placed.status();
    if (*placed == Placed::kDone) return absl::OkStatus();
  }
  return absl::UnavailableError(
      fmt::format("{} is moved away again and again", path_));
}

absl::StatusOr<LineFile::Placed> LineFile::append_once(std::string_view line,
                                                       double seconds) {
  struct stat named {};
  // Standard output may be a file, but its lines are not all of this kind.
  const bool is_special =
      stat(path_.c_str(), &named) == 0 &&
      (!S_ISREG(named.st_mode) || path_.starts_with("/dev/"));
  const UniqueFd fd(open(path_.c_str(),
                         (is_special ? O_WRONLY : O_RDWR | O_CREAT) | O_APPEND |
                             O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                         0644));
  if (fd.value() < 0) return failed("cannot open", errno);
  if (is_special) {
    const auto status = append_special(fd.value(), line, seconds);
    if (!status.ok()) return status;
    return Placed::kDone;
  }
  const FileLock lock(fd.value());
  if (lock.is_of_another())
    return absl::UnavailableError(
        fmt::format("{} is locked by another process", path_));
  struct stat opened {};
  if (fstat(fd.value(), &opened) != 0) return failed("cannot read", errno);
  // Another exporter may have moved it on before the lock was had.
  if (stat(path_.c_str(), &named) != 0 || !are_the_same(named, opened))
    return Placed::kElsewhere;
  return append_locked(fd.value(), line);
}

absl::StatusOr<LineFile::Placed> LineFile::append_locked(
    int fd, std::string_view line) {
  struct stat opened {};
  if (fstat(fd, &opened) != 0) return failed("cannot read", errno);
  const auto size = cut_half_line(fd, opened.st_size);
  if (!size.ok()) return size.status();
  if (max_bytes_ > 0 && *size > 0 &&
      static_cast<std::uint64_t>(*size) + line.size() > max_bytes_) {
    if (std::rename(path_.c_str(), (path_ + ".1").c_str()) != 0)
      return failed("cannot rename", errno);
    return Placed::kElsewhere;
  }
  std::size_t written = 0;
  const auto status = write(fd, line, 0.0, written);
  if (status.ok()) return Placed::kDone;
  // If this fails too, whoever adds the next line cuts this one.
  if (written > 0) static_cast<void>(ftruncate(fd, *size));
  return status;
}

// A pipe or a terminal: what it has of a line it keeps.
absl::Status LineFile::append_special(int fd, std::string_view line,
                                      double seconds) {
  std::string text(in_line_ ? "\n" : "");
  text += line;
  std::size_t written = 0;
  const auto status = write(fd, text, seconds, written);
  if (written > 0) in_line_ = text[written - 1] != '\n';
  return status;
}

// The file's size without a half line at its end. A file of something else is
// left alone.
absl::StatusOr<off_t> LineFile::cut_half_line(int fd, off_t size) {
  if (size == 0) return size;
  const auto other = absl::FailedPreconditionError(fmt::format(
      "{} is not a file of lines that begin with {}", path_, head_));
  if (!begins_alike(read_at(fd, 0, head_.size()), head_)) return other;
  if (read_at(fd, size - 1, 1) == "\n") return size;
  const off_t begin = begin_of_last_line(fd, size);
  const std::string half = read_at(fd, begin, head_.size());
  // A machine that lost its power leaves zeros.
  if (!begins_alike(half, head_) && !half.starts_with('\0')) return other;
  if (ftruncate(fd, begin) != 0) return failed("cannot cut", errno);
  return begin;
}

// How much of `text` is there is added to `written`, whatever then fails.
absl::Status LineFile::write(int fd, std::string_view text, double seconds,
                             std::size_t& written) {
  const double deadline = monotonic() + seconds;
  while (written < text.size()) {
    const ssize_t count =
        ::write(fd, text.data() + written, text.size() - written);
    if (count > 0) {
      written += static_cast<std::size_t>(count);
    } else if (count == 0) {
      return failed("cannot write", ENOSPC);
    } else if (errno != EINTR &&
               !(errno == EAGAIN && wait_until_writable(fd, deadline))) {
      return failed("cannot write", errno);
    }
  }
  return absl::OkStatus();
}

bool LineFile::wait_until_writable(int fd, double deadline) const {
  constexpr double kLongestWait = 0.1;  // seconds without a look at cancelled_
  pollfd waiting{.fd = fd, .events = POLLOUT, .revents = 0};
  while (!cancelled_) {
    const double left = deadline - monotonic();
    if (left <= 0.0) return false;
    const int milliseconds =
        static_cast<int>(std::min(left, kLongestWait) * 1e3) + 1;
    if (poll(&waiting, 1, milliseconds) > 0) return true;
  }
  return false;
}

}  // namespace vllm_metrics::inline v0::otlp
