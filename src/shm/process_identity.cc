#include "src/shm/process_identity.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>

namespace vllm_metrics::inline v0::shm {
namespace {

// The start of a file under /proc; empty when it cannot be read.
std::string_view read_start(const char* path, std::array<char, 1024>& buffer) {
  const UniqueFd file(::open(path, O_RDONLY | O_CLOEXEC));
  if (file.value() < 0) return {};
  const ssize_t size = ::read(file.value(), buffer.data(), buffer.size());
  return {buffer.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
}

struct ProcStat {
  char state = 0;  // 0: there is no such process
  std::uint64_t start_time = 0;
};

// Of /proc/PID/stat; the second field may hold blanks and parentheses.
ProcStat stat_of(std::int32_t pid) {
  std::array<char, 32> path{"/proc/"};
  char* out = path.data() + std::strlen(path.data());
  std::array<char, 12> digits{};
  std::size_t count = 0;
  for (auto n = static_cast<std::uint32_t>(pid); n != 0 || count == 0; n /= 10)
    digits[count++] = static_cast<char>('0' + n % 10);
  while (count != 0) *out++ = digits[--count];
  std::memcpy(out, "/stat", sizeof "/stat");

  std::array<char, 1024> buffer;
  std::string_view text = read_start(path.data(), buffer);
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 >= text.size())
    return {};
  text.remove_prefix(name_end + 2);
  ProcStat made{.state = text.front()};
  constexpr int kStartTime = 22 - 3;  // the state is field 3
  for (int field = 0; field < kStartTime; ++field) {
    const std::size_t blank = text.find(' ');
    if (blank == std::string_view::npos) return {};
    text.remove_prefix(blank + 1);
  }
  for (const char digit : text.substr(0, text.find(' ')))
    made.start_time =
        made.start_time * 10 + static_cast<std::uint64_t>(digit - '0');
  return made;
}

std::array<std::uint64_t, 2> boot_id() {
  std::array<char, 1024> buffer;
  std::array<std::uint64_t, 2> id{};
  std::size_t digits = 0;
  for (const char c : read_start("/proc/sys/kernel/random/boot_id", buffer)) {
    const int value = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                             : -1;
    if (value < 0 || digits == 32) continue;
    std::uint64_t& half = id[digits++ / 16];
    half = half << 4 | static_cast<std::uint64_t>(value);
  }
  return id;
}

}  // namespace

ProcessIdentity ProcessIdentity::of_this_process() noexcept {
  struct stat pid_namespace {};
  const bool has_namespace = ::stat("/proc/self/ns/pid", &pid_namespace) == 0;
  const std::int32_t pid = ::getpid();
  return {.pid = pid,
          .start_time = stat_of(pid).start_time,
          .pid_namespace = has_namespace ? pid_namespace.st_ino : 0,
          .boot_id = vllm_metrics::shm::boot_id()};
}

ProcessWatch::ProcessWatch(const ProcessIdentity& process,
                           const ProcessIdentity& self)
    : process_(process),
      is_same_boot_(process.boot_id == self.boot_id),
      is_visible_(process.pid_namespace == self.pid_namespace) {
  if (!is_same_boot_ || !is_visible_ || process.pid <= 0) return;
#ifdef SYS_pidfd_open
  pidfd_ =
      UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
#endif
  // The descriptor is of whoever has the pid by now.
  const ProcStat now = stat_of(process.pid);
  if (now.state != 0 && now.start_time != process.start_time) has_ended_ = true;
}

bool ProcessWatch::is_alive() {
  if (has_ended_) return false;
  if (is_same_boot_ && !is_visible_) return true;
  if (!is_same_boot_ || process_.pid <= 0) {
    has_ended_ = true;
  } else if (pidfd_.value() >= 0) {
    struct pollfd watched {
      pidfd_.value(), POLLIN, 0
    };
    has_ended_ = ::poll(&watched, 1, 0) == 1;
  } else {
    const ProcStat now = stat_of(process_.pid);
    const bool is_gone =
        now.state == 0 && ::kill(process_.pid, 0) != 0 && errno == ESRCH;
    const bool is_other =
        now.state != 0 && now.start_time != process_.start_time;
    has_ended_ = is_gone || is_other || now.state == 'Z' || now.state == 'X';
  }
  if (has_ended_) pidfd_.reset();
  return !has_ended_;
}

}  // namespace vllm_metrics::inline v0::shm
