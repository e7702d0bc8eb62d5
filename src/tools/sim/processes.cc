#include "src/tools/sim/processes.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>

namespace vllm_metrics::sim {
namespace {

absl::Status error_of(std::string_view what) {
  return absl::UnavailableError(
      fmt::format("--processes: {}: {}", what, std::strerror(errno)));
}

// In the child. Nothing leaves it: what is further up the stack is another
// process's, its siblings with it.
[[noreturn]] void run(const Processes::Work& work, std::size_t number,
                      std::FILE* out, pid_t parent) noexcept {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);  // it has died meanwhile
  int status = 1;
  try {
    status = work(number, out);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "vllm-metrics-sim: process %zu: %s\n", number + 1,
                 error.what());
  }
  std::fflush(out);
  ::_exit(status);
}

// Of a process whose waitpid() gave `waited` and `status`; empty for success.
std::string failure_of(pid_t waited, int status) {
  if (waited < 0) {
    return fmt::format("ended, status unknown: {}", std::strerror(errno));
  }
  if (WIFSIGNALED(status)) {
    return fmt::format("died: {}", ::strsignal(WTERMSIG(status)));
  }
  if (WEXITSTATUS(status) == 0) return {};
  return fmt::format("ended with status {}", WEXITSTATUS(status));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Processes>> Processes::start(std::size_t count,
                                                            const Work& work) {
  std::fflush(nullptr);  // or a child prints it too
  // Who started this program may have it ignored, which an exec keeps.
  std::signal(SIGCHLD, SIG_DFL);
  std::unique_ptr<Processes> made(new Processes);
  const pid_t parent = ::getpid();
  for (std::size_t i = 0; i < count; ++i) {
    Process& process = made->all_.emplace_back();
    process.out.reset(std::tmpfile());
    if (process.out == nullptr) return error_of("no temporary file");
    process.pid = ::fork();
    if (process.pid < 0) return error_of("cannot fork");
    if (process.pid == 0) run(work, i, process.out.get(), parent);
    process.runs = true;
    ++made->num_running_;
  }
  return made;
}

Processes::~Processes() {
  for (const Process& process : all_) {
    if (process.runs) ::kill(process.pid, SIGKILL);
  }
  for (const Process& process : all_) {
    if (process.runs) ::waitpid(process.pid, nullptr, 0);
  }
}

void Processes::look(const std::function<void(std::string_view)>& failed) {
  for (std::size_t i = 0; i < all_.size(); ++i) {
    Process& process = all_[i];
    if (!process.runs) continue;
    int status = 0;
    const pid_t waited = ::waitpid(process.pid, &status, WNOHANG);
    if (waited == 0 || (waited < 0 && errno == EINTR)) continue;
    const std::string failure = failure_of(waited, status);
    process.runs = false;
    --num_running_;
    if (failure.empty()) continue;
    any_failed_ = true;
    failed(fmt::format("process {} of {} (pid {}) {}", i + 1, all_.size(),
                       process.pid, failure));
  }
}

void Processes::interrupt() {
  for (const Process& process : all_) {
    if (!process.runs) continue;
    ::kill(process.pid, SIGTERM);
    ::kill(process.pid, SIGCONT);  // who is stopped would not notice
  }
}

std::string Processes::output(std::size_t number) {
  std::FILE* const file = all_[number].out.get();
  std::string text;
  std::rewind(file);
  std::array<char, 4096> piece;
  while (const std::size_t size =
             std::fread(piece.data(), 1, piece.size(), file)) {
    text.append(piece.data(), size);
  }
  return text;
}

}  // namespace vllm_metrics::sim
