#include "src/otlp/line_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "src/registry/unique_fd.h"
#include "vllm_metrics/loggers/clock.h"

namespace vllm_metrics::inline v0::otlp {
namespace {

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

double now() { return Clock::system()->monotonic(); }

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

// The number of a file that the process has open, for names like /dev/stdout.
std::optional<int> open_already(std::string_view path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    const std::string number(path.substr(folder.size()));
    int fd = -1;
    if (absl::SimpleAtoi(number, &fd) && fd >= 0) return fd;
  }
  return std::nullopt;
}

// A pipe, terminal or socket, for all exporters of the process: a line may be
// longer than what the kernel takes in one piece.
struct Stream {
  std::mutex writing;
  bool in_line = false;  // it has taken half a line; of who is writing
};

Stream& stream_of(const struct stat& file) {
  static std::mutex mutex;
  // Never destroyed: an exporter may still write while the process ends.
  static auto& streams = *new std::map<std::pair<dev_t, ino_t>, Stream>;
  const std::lock_guard lock(mutex);
  return streams[{file.st_dev, file.st_ino}];
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
  // Opened anew, standard output would be written from another place of the
  // file, and not at all where it is a socket.
  const auto shared = open_already(path_);
  const bool is_special =
      shared || (stat(path_.c_str(), &named) == 0 && !S_ISREG(named.st_mode));
  const UniqueFd fd(shared
                        ? fcntl(*shared, F_DUPFD_CLOEXEC, 0)
                        : open(path_.c_str(),
                               (is_special ? O_WRONLY : O_RDWR | O_CREAT) |
                                   O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
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
  const auto status = write(fd, line, written);
  if (status.ok()) return Placed::kDone;
  // If this fails too, whoever adds the next line cuts this one.
  if (written > 0) static_cast<void>(ftruncate(fd, *size));
  return status;
}

// What a pipe or a terminal has of a line it keeps. Pieces are what a pipe that
// poll() calls writable takes without a wait: whether standard output waits is
// for those to say who share it.
absl::Status LineFile::append_special(int fd, std::string_view line,
                                      double seconds) {
  struct stat opened {};
  if (fstat(fd, &opened) != 0) return failed("cannot read", errno);
  const double deadline = now() + seconds;
  Stream& stream = stream_of(opened);
  std::unique_lock turn(stream.writing, std::try_to_lock);
  while (!turn.owns_lock()) {
    constexpr int kMilliseconds = 5;
    if (cancelled_ || now() >= deadline)
      return absl::UnavailableError(
          fmt::format("{} is being written by another exporter", path_));
    poll(nullptr, 0, kMilliseconds);
    static_cast<void>(turn.try_lock());
  }
  std::string text(stream.in_line ? "\n" : "");
  text += line;
  std::size_t written = 0;
  absl::Status status;
  while (status.ok() && written < text.size()) {
    status = wait_until_writable(fd, deadline);
    if (status.ok())
      status = write(fd, std::string_view(text).substr(0, written + PIPE_BUF),
                     written);
  }
  if (written > 0) stream.in_line = text[written - 1] != '\n';
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

// How much of `text` is there is added to `written`, whatever then fails. A
// file that does not wait may have taken less.
absl::Status LineFile::write(int fd, std::string_view text,
                             std::size_t& written) {
  while (written < text.size()) {
    const ssize_t count =
        ::write(fd, text.data() + written, text.size() - written);
    if (count > 0) {
      written += static_cast<std::size_t>(count);
    } else if (count == 0) {
      return failed("cannot write", ENOSPC);
    } else if (errno == EAGAIN) {
      return absl::OkStatus();
    } else if (errno != EINTR) {
      return failed("cannot write", errno);
    }
  }
  return absl::OkStatus();
}

absl::Status LineFile::wait_until_writable(int fd, double deadline) const {
  constexpr double kLongestWait = 0.1;  // seconds without a look at cancelled_
  pollfd waiting{.fd = fd, .events = POLLOUT, .revents = 0};
  while (!cancelled_) {
    const double left = std::max(deadline - now(), 0.0);
    const int milliseconds =
        left > 0.0 ? static_cast<int>(std::min(left, kLongestWait) * 1e3) + 1
                   : 0;
    if (poll(&waiting, 1, milliseconds) > 0) {
      // Before the write, which would be a SIGPIPE.
      if ((waiting.revents & (POLLERR | POLLHUP)) != 0)
        return failed("cannot write", EPIPE);
      return absl::OkStatus();
    }
    if (left <= 0.0) break;
  }
  return failed("cannot write", EAGAIN);
}

}  // namespace vllm_metrics::inline v0::otlp
